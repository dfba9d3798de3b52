import { z } from 'zod';

/** The parts of Kubernetes objects that the driver reads. Everything else is passed over. */

const metadata = z.object({
  name: z.string(),
  uid: z.string(),
  labels: z.record(z.string(), z.string()).default({}),
  deletionTimestamp: z.string().optional(),
});

const condition = z.object({ type: z.string(), status: z.string(), reason: z.string().default(''), message: z.string().default('') });

export const kubeNode = z.object({
  metadata,
  spec: z.object({
    unschedulable: z.boolean().default(false),
    taints: z.array(z.object({ key: z.string(), value: z.string().default(''), effect: z.string().default('NoSchedule') })).default([]),
  }).prefault({}),
  status: z.object({ allocatable: z.record(z.string(), z.string()).default({}), conditions: z.array(condition).default([]) }).prefault({}),
});
export type KubeNode = z.output<typeof kubeNode>;

const terminated = z.object({ exitCode: z.int(), reason: z.string().default(''), message: z.string().default('') });
const containerStatus = z.object({
  ready: z.boolean().default(false),
  state: z.object({
    waiting: z.object({ reason: z.string().default(''), message: z.string().default('') }).optional(),
    running: z.object({}).optional(),
    terminated: terminated.optional(),
  }).prefault({}),
});

export const kubePod = z.object({
  metadata,
  spec: z.object({ nodeName: z.string().default('') }).prefault({}),
  status: z.object({
    phase: z.string().default('Pending'),
    reason: z.string().default(''),
    message: z.string().default(''),
    podIP: z.string().optional(),
    conditions: z.array(condition).default([]),
    containerStatuses: z.array(containerStatus).default([]),
  }).prefault({}),
});
export type KubePod = z.output<typeof kubePod>;

const attribute = z.object({ string: z.string().optional() });
const deviceCapacity = z.object({ value: z.string() });

export const kubeResourceSlice = z.object({
  metadata,
  spec: z.object({
    driver: z.string(),
    nodeName: z.string().default(''),
    devices: z.array(z.object({
      name: z.string(),
      attributes: z.record(z.string(), attribute).default({}),
      capacity: z.record(z.string(), deviceCapacity).default({}),
    })).default([]),
  }),
});
export type KubeResourceSlice = z.output<typeof kubeResourceSlice>;
export type KubeDevice = KubeResourceSlice['spec']['devices'][number];

const SCALES: Readonly<Record<string, number>> = {
  '': 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50,
};

/** The number behind a quantity such as `8`, `7500m` or `128Gi`; undefined when it is none. */
export function parseQuantity(text: string | undefined): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(text ?? '');
  const scale = SCALES[match?.[2] ?? ''];
  return match === null || scale === undefined ? undefined : Number(match[1]) * scale;
}
