import type { ReplicaAssignment } from '@penstock/domain-lifecycle';
import type { NodeDevice } from './observed/node-devices.js';
import type { PodSettings } from './objects/replica-pod.js';

export const assignment: ReplicaAssignment = {
  replicaId: 'rep_01', endpointId: 'ep_01', modelVersionId: 'mv_01', nodeId: 'node_01', acceleratorIds: ['acc_0', 'acc_1'], members: [{ nodeId: 'node_01', acceleratorIds: ['acc_0', 'acc_1'] }], mig: null, tolerations: [], reservedBytes: 1, engine: 'vllm', modelName: 'llama',
  source: { kind: 'hugging-face', repository: 'owner/model', revision: 'abc', files: ['model.gguf'] }, slots: 8, contextTokens: 4_096, engineOptions: { gpu_memory_utilization: 0.9, enforce_eager: true },
};

export const podSettings: PodSettings = { cluster: 'main', images: { vllm: 'vllm/vllm-openai:test', 'llama.cpp': 'llama.cpp:test' }, hubTokenSecret: 'hub', modelCacheClaim: undefined, runtimeClass: 'nvidia' };

export function extended(index: number, resource = 'nvidia.com/gpu'): NodeDevice {
  return { accelerator: { acceleratorId: `acc_${index}`, type: 'h100', memoryBytes: 1, device: `k8s:${resource}`, usableBytes: 1, computeMilli: 1_000, islandId: 'h100', mig: null }, request: { kind: 'extended', resource } };
}

export function claimed(index: number): NodeDevice {
  return { accelerator: { acceleratorId: `acc_${index}`, type: 'a100', memoryBytes: 1, device: `dra:gpu.nvidia.com/gpu-${index}`, usableBytes: 1, computeMilli: 1_000, islandId: 'a100', mig: null }, request: { kind: 'claim', deviceClass: 'gpu.nvidia.com', expression: `device.attributes["gpu.nvidia.com"].uuid == "GPU-${index}"` } };
}
