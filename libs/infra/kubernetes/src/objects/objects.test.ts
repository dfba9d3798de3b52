import { ReplicaAssignmentError } from '@penstock/domain-lifecycle';
import { describe, expect, test } from '@jest/globals';
import { assignment, claimed, extended, podSettings } from '../testing-assignment-suite.js';
import { podDisruptionBudget } from './disruption-budget.js';
import { engineArguments } from './engine-arguments.js';
import { buildLeaderWorkerSet } from './leader-worker-set.js';
import { replicaPod } from './replica-pod.js';
import { resourceClaim } from './resource-claim.js';

describe('the Pod of a replica', () => {
  test('asks for as many devices of each kind as were planned, on the planned node', () => {
    const pod = replicaPod(assignment, 'gpu-1.example', [extended(0), extended(1), extended(2, 'nvidia.com/mig-1g.10gb')], podSettings);
    expect(pod).toMatchObject({
      metadata: { name: 'rep-01', labels: { 'app.kubernetes.io/managed-by': 'penstock', 'penstock.dev/replica-id': 'rep_01' } },
      spec: {
        restartPolicy: 'Never', runtimeClassName: 'nvidia', automountServiceAccountToken: false,
        affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['gpu-1.example'] }] }] } } },
        containers: [{ resources: { limits: { 'nvidia.com/gpu': '2', 'nvidia.com/mig-1g.10gb': '1' } } }],
      },
    });
    expect(JSON.stringify(pod)).not.toContain('resourceClaims');
    expect(resourceClaim(assignment, [extended(0)], 'main')).toBeUndefined();
  });

  test('claims the very devices where DRA hands them out', () => {
    expect(replicaPod(assignment, 'gpu-1', [claimed(0), claimed(1)], podSettings)).toMatchObject({
      spec: { resourceClaims: [{ name: 'devices', resourceClaimName: 'rep-01' }], containers: [{ resources: { claims: [{ name: 'devices' }] } }] },
    });
    expect(resourceClaim(assignment, [claimed(0), claimed(1)], 'main')).toMatchObject({
      metadata: { name: 'rep-01' },
      spec: { devices: { requests: [0, 1].map((index) => ({ exactly: { count: 1, selectors: [{ cel: { expression: `device.attributes["gpu.nvidia.com"].uuid == "GPU-${index}"` } }] } })) } },
    });
  });

  test('tolerates the taints that the endpoint does', () => {
    expect(replicaPod({ ...assignment, tolerations: ['team=a:NoSchedule', 'not of kubernetes'] }, 'gpu-1', [extended(0)], podSettings)).toMatchObject({ spec: { tolerations: [{ key: 'nvidia.com/gpu' }, { key: 'team', operator: 'Equal', value: 'a', effect: 'NoSchedule' }] } });
  });

  test('no image is a missing engine', () => {
    expect(() => replicaPod(assignment, 'gpu-1', [extended(0)], { ...podSettings, images: {} })).toThrow(new ReplicaAssignmentError('engine_missing', 'There is no image for vllm: add it to KUBERNETES_ENGINE_IMAGES.'));
  });
});

describe('the command line of an engine', () => {
  test('vLLM splits tensors over its devices and takes options as flags', () => {
    const { args } = engineArguments(assignment);
    expect(args.slice(0, 3)).toEqual(['owner/model', '--revision', 'abc']);
    expect(args.join(' ')).toContain('--tensor-parallel-size 2 --enforce-eager --gpu-memory-utilization 0.9');
  });

  test('vLLM and the simulated engine get their adapters; what a Pod cannot fetch is refused', () => {
    const adapters = ['sql', 'support'].map((name) => ({ name, source: { kind: 'hugging-face' as const, repository: `owner/${name}-lora`, revision: 'main', files: [] } }));
    expect(engineArguments({ ...assignment, adapters }).args.join(' ')).toContain('--enable-lora --max-loras 2 --lora-modules sql=owner/sql-lora support=owner/support-lora --enforce-eager');
    const own = engineArguments({ ...assignment, adapters, engineOptions: { max_loras: 8 } }).args.join(' ');
    expect(own).toContain('--enable-lora --lora-modules sql=owner/sql-lora support=owner/support-lora --max-loras 8');
    expect(engineArguments({ ...assignment, engine: 'engine-sim', adapters: [{ name: 'sql', source: null }], engineOptions: {} }).args.slice(-4)).toEqual(['--max-loras', '1', '--lora-modules', 'sql']);
    expect(() => engineArguments({ ...assignment, adapters: [{ name: 'sql', source: { kind: 'directory', path: '/loras/sql' } }] })).toThrow(/adapter sql out of a repository/);
  });

  test('llama.cpp divides its context by its slots', () => {
    const withEvents = engineArguments({ ...assignment, engine: 'vllm', engineOptions: { hedge: true, kv_cache_tokens: 80_000, kv_events_port: 5_557, prefill_tokens_per_second: 9_000 } }).args;
    expect(withEvents.slice(-2)).toEqual(['--kv-events-config', '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","topic":"kv@llama"}']);
    expect(engineArguments({ ...assignment, engine: 'llama.cpp', engineOptions: {} }).args.join(' ')).toContain('--hf-repo owner/model --hf-file model.gguf --alias llama --host 0.0.0.0 --port 8000 --ctx-size 32768 --parallel 8');
  });

  test('engines without an image of their own are refused', () => {
    expect(() => engineArguments({ ...assignment, engine: 'onnx' })).toThrow(/Pods do not run onnx/);
  });

  test.each([['vllm', { kind: 'https', urls: ['https://host/model.safetensors'] }], ['llama.cpp', { kind: 'directory', path: '/models' }], ['vllm', { kind: 'none' }]] as const)('%s cannot fetch %j in a Pod', (engine, source) => {
    expect(() => engineArguments({ ...assignment, engine, source: source.kind === 'https' ? { ...source, urls: [...source.urls] } : source })).toThrow(ReplicaAssignmentError);
  });
});

describe('a gang', () => {
  const gang = { assignment, nodeNames: ['gpu-0', 'gpu-1'], devicesPerNode: [extended(0), extended(1)] };

  test('splits tensors inside a node and layers over nodes; only its leader is probed', () => {
    const set = buildLeaderWorkerSet(gang, podSettings) as { spec: { leaderWorkerTemplate: { size: number; leaderTemplate: { spec: { containers: { args: string[] }[] } }; workerTemplate: { spec: { containers: { args: string[]; readinessProbe?: unknown }[] } } } } };
    const { size, leaderTemplate, workerTemplate } = set.spec.leaderWorkerTemplate;
    expect(size).toBe(2);
    expect(leaderTemplate.spec.containers[0]?.args.join(' ')).toContain('--tensor-parallel-size 2 --enforce-eager --gpu-memory-utilization 0.9 --pipeline-parallel-size 2 --nnodes 2 --node-rank $(LWS_WORKER_INDEX) --master-addr $(LWS_LEADER_ADDRESS)');
    expect(workerTemplate.spec.containers[0]?.args.at(-1)).toBe('--headless');
    expect(workerTemplate.spec.containers[0]?.readinessProbe).toBeUndefined();
  });

  test('needs vLLM, two nodes and whole devices', () => {
    for (const bad of [{ ...gang, nodeNames: ['gpu-0'] }, { ...gang, devicesPerNode: [] }, { ...gang, devicesPerNode: [claimed(0)] }, { ...gang, assignment: { ...assignment, engine: 'llama.cpp' as const } }]) {
      expect(() => buildLeaderWorkerSet(bad, podSettings)).toThrow(ReplicaAssignmentError);
    }
  });
});

test('a disruption budget of Pods without a controller is a whole number that stays', () => {
  expect(podDisruptionBudget({ endpointId: 'ep_01', availableMin: 3 }, 'main')).toMatchObject({ metadata: { name: 'ep-01' }, spec: { minAvailable: 3, unhealthyPodEvictionPolicy: 'AlwaysAllow' } });
});
