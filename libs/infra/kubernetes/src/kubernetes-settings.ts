import { z } from 'zod';

const dnsLabel = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/, 'lower-case letters, digits and hyphens, at most 32');

/** The image of each engine that Pods may run; an engine without one is not offered. */
export const engineImages = z.partialRecord(z.enum(['vllm', 'llama.cpp', 'engine-sim']), z.string().min(1).max(500));

/** Settings of the Kubernetes driver, as they stand in the environment. */
export const kubernetesSettings = z.object({
  /** Names the cluster inside this installation; it becomes part of node ids and never changes. */
  KUBERNETES_CLUSTER: dnsLabel.default('main'),
  KUBERNETES_NAMESPACE: dnsLabel.default('penstock'),
  /** A kubeconfig file; inside a cluster the service account of the Pod is used. */
  KUBECONFIG: z.string().max(4_096).optional(),
  /** JSON: `{"vllm":"registry/image:tag"}`. */
  KUBERNETES_ENGINE_IMAGES: z.string().default('{}').transform((text, context) => {
    try {
      return engineImages.parse(JSON.parse(text));
    } catch {
      context.addIssue({ code: 'custom', message: 'must be JSON such as {"vllm":"registry/image:tag"} with the engines vllm, llama.cpp, engine-sim' });
      return z.NEVER;
    }
  }),
  /** Secret with the key `token` for gated models on the hub. */
  KUBERNETES_HUB_TOKEN_SECRET: dnsLabel.optional(),
  /** A claim that all Pods share for model files; without one each Pod pulls into its own scratch space. */
  KUBERNETES_MODEL_CACHE_CLAIM: dnsLabel.optional(),
  KUBERNETES_RUNTIME_CLASS: dnsLabel.optional(),
  /** The DRA driver whose devices are offered, where the cluster has it. */
  KUBERNETES_DRA_DRIVER: z.string().max(63).default('gpu.nvidia.com'),
  /** One address for the engine of every Pod instead of its own: for clusters whose Pods are not real. */
  KUBERNETES_ENGINE_URL: z.url().optional(),
});
export type KubernetesSettings = z.output<typeof kubernetesSettings>;
