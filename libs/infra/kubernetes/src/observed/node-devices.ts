import { WHOLE_COMPUTE_MILLI, type NodeJoinedV2 } from '@penstock/contract-events';
import { acceleratorTypeOf } from '@penstock/domain-serving';
import { parseQuantity, type KubeDevice, type KubeNode, type KubeResourceSlice } from './kube-objects.js';

/** How a Pod asks for one device. */
export type DeviceRequest =
  /** As an extended resource: the node's device plugin chooses which of its kind. */
  | { readonly kind: 'extended'; readonly resource: string }
  /** As a DRA claim: the expression names the very device. */
  | { readonly kind: 'claim'; readonly deviceClass: string; readonly expression: string };

export interface NodeDevice {
  readonly accelerator: NodeJoinedV2['accelerators'][number];
  readonly request: DeviceRequest;
}

const MEBIBYTE = 1_048_576;
const GIBIBYTE = 1_073_741_824;
/** Where no label tells the usable memory, this share of the nominal one is taken; real cards show 0.96 to 0.99. */
const USABLE_SHARE = 0.95;
/** A node says at most this many accelerators to the fleet. */
export const ACCELERATORS_MAX = 64;
const MIG_RESOURCE = /^nvidia\.com\/mig-(\d+g\.(\d+)gb(?:\.me)?)$/;
const MIG_PRODUCT = /-MIG-(\d+g\.\d+gb(?:\.me)?)$/;
const SLICE_COMPUTE = /-mig-(\d+)g\./;
/** Of every GPU that has MIG, but for the A30, which has four. */
const COMPUTE_SLICES = 7;
const PRODUCT_GIGABYTES = /(\d+)GB/i;

/** Devices that the node's device plugin offers: whole GPUs, and slices of them under the mixed MIG strategy. */
export function extendedDevices(node: KubeNode, nodeId: string): readonly NodeDevice[] {
  const { labels } = node.metadata;
  const product = labels['nvidia.com/gpu.product'] ?? '';
  const gpuType = acceleratorTypeOf(product.replace(MIG_PRODUCT, ''));
  const devices: NodeDevice[] = [];
  for (const [resource, amount] of Object.entries(node.status.allocatable).sort(([one], [other]) => (one < other ? -1 : 1))) {
    const offer = offerOf(resource, labels, product, gpuType);
    if (offer === undefined) continue;
    for (let index = 0; index < (parseQuantity(amount) ?? 0); index += 1) {
      devices.push({
        accelerator: { acceleratorId: `${nodeId}-${idPart(resource.replace('nvidia.com/', ''))}-${index}`, ...offer, ...asPart(offer), device: `k8s:${resource}` },
        request: { kind: 'extended', resource },
      });
    }
  }
  return devices;
}

/**
 * What plans need beside type and memory. Kubernetes hands out whole devices and chooses which, so that those of one type on a
 * node count as one island; a slice has no link to others.
 */
function asPart({ type, memoryBytes }: Offer): Pick<NodeDevice['accelerator'], 'usableBytes' | 'computeMilli' | 'islandId' | 'mig'> {
  const slice = SLICE_COMPUTE.exec(type);
  const computeMilli = slice === null ? WHOLE_COMPUTE_MILLI : Math.floor((WHOLE_COMPUTE_MILLI * Number(slice[1])) / COMPUTE_SLICES);
  return { usableBytes: memoryBytes, computeMilli: Math.min(WHOLE_COMPUTE_MILLI, Math.max(1, computeMilli)), islandId: slice === null ? type : null, mig: null };
}

interface Offer {
  readonly type: string;
  readonly memoryBytes: number;
}

function offerOf(resource: string, labels: KubeNode['metadata']['labels'], product: string, gpuType: string): Offer | undefined {
  if (resource === 'nvidia.com/gpu') {
    // Under the single MIG strategy every `gpu` is a slice, and the product says which.
    const profile = MIG_PRODUCT.exec(product)?.[1];
    const memoryBytes = labelMemory(labels['nvidia.com/gpu.memory']) ?? nominalMemory(profile === undefined ? PRODUCT_GIGABYTES.exec(product)?.[1] : /\.(\d+)gb/.exec(profile)?.[1]);
    return product === '' || memoryBytes === undefined ? undefined : { type: profile === undefined ? gpuType : sliceType(gpuType, profile), memoryBytes };
  }
  const mig = MIG_RESOURCE.exec(resource);
  if (mig === null) return undefined;
  const memoryBytes = labelMemory(labels[`${resource}.memory`]) ?? nominalMemory(mig[2]);
  return memoryBytes === undefined ? undefined : { type: sliceType(gpuType, mig[1] ?? ''), memoryBytes };
}

/** Devices that a DRA driver publishes for this node. */
export function claimDevices(slices: readonly KubeResourceSlice[], nodeName: string, nodeId: string, driver: string): readonly NodeDevice[] {
  return slices
    .filter((slice) => slice.spec.driver === driver && slice.spec.nodeName === nodeName)
    .flatMap((slice) => slice.spec.devices)
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((device) => claimDevice(device, nodeId, driver) ?? []);
}

function claimDevice(device: KubeDevice, nodeId: string, driver: string): NodeDevice | undefined {
  const text = (name: string): string | undefined => device.attributes[name]?.string;
  const uuid = text('uuid');
  const profile = text('profile');
  const memoryBytes = parseQuantity(device.capacity['memory']?.value);
  // Without its own id a device could not be told from its neighbours, and two replicas might be given the same one.
  if (uuid === undefined || memoryBytes === undefined || !/^[A-Za-z0-9-]{1,100}$/.test(uuid)) return undefined;
  const gpuType = acceleratorTypeOf(text('productName') ?? '');
  return {
    accelerator: {
      acceleratorId: `${nodeId}-dra-${idPart(device.name)}`,
      type: profile === undefined ? gpuType : sliceType(gpuType, profile),
      memoryBytes: Math.floor(memoryBytes),
      device: `dra:${driver}/${device.name}`,
      ...asPart({ type: profile === undefined ? gpuType : sliceType(gpuType, profile), memoryBytes: Math.floor(memoryBytes) }),
    },
    request: {
      kind: 'claim',
      deviceClass: profile === undefined ? driver : driver.replace(/^gpu\./, 'mig.'),
      expression: `device.driver == "${driver}" && device.attributes["${driver}"].uuid == "${uuid}"`,
    },
  };
}

/** As in `h100-mig-1g.10gb`: what an endpoint asks for when it wants a slice. */
function sliceType(gpuType: string, profile: string): string {
  return `${gpuType}-mig-${profile}`;
}

function labelMemory(mebibytes: string | undefined): number | undefined {
  const value = Number(mebibytes);
  return Number.isInteger(value) && value > 0 ? value * MEBIBYTE : undefined;
}

function nominalMemory(gigabytes: string | undefined): number | undefined {
  const value = Number(gigabytes);
  return Number.isInteger(value) && value > 0 ? Math.floor(value * GIBIBYTE * USABLE_SHARE) : undefined;
}

function idPart(text: string): string {
  return text.replace(/[^A-Za-z0-9_-]/g, '-').slice(0, 40);
}
