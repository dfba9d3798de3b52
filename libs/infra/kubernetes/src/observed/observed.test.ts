import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { kubeNode, kubePod, kubeResourceSlice, parseQuantity } from './kube-objects.js';
import { nodeIdOf, observeNode } from './observe-node.js';
import { observeDeletedPod, observePod, observePods } from './observe-pod.js';

const reading = { cluster: 'main', draDriver: 'gpu.nvidia.com', engines: [{ kind: 'vllm' as const, version: 'v1' }], driverVersion: '0.1.0' };
const uid = '0b8c7f2e-54d1-4f0e-9a3c-1d2e3f4a5b6c';

function node(change: { labels?: Record<string, string>; allocatable?: Record<string, string>; unschedulable?: boolean; ready?: string } = {}) {
  return kubeNode.parse({
    metadata: { name: 'gpu-1.example', uid, labels: { 'nvidia.com/gpu.product': 'NVIDIA-H100-80GB-HBM3', 'nvidia.com/gpu.memory': '81559', ...change.labels } },
    spec: { unschedulable: change.unschedulable ?? false },
    status: { allocatable: { cpu: '7500m', memory: '64Gi', ...(change.allocatable ?? { 'nvidia.com/gpu': '2' }) }, conditions: [{ type: 'Ready', status: change.ready ?? 'True', reason: 'KubeletReady' }] },
  });
}

describe('a gang', () => {
  const member = (index: number, status: object, deletionTimestamp?: string) => kubePod.parse({
    metadata: { name: `rep-01-0-${index}`, uid: `u${index}`, labels: { 'penstock.dev/replica-id': 'rep_01', 'leaderworkerset.sigs.k8s.io/worker-index': String(index) }, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
    spec: { nodeName: `gpu-${index}` }, status,
  });
  const serving = { phase: 'Running', podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }], containerStatuses: [{ state: { running: {} } }] };
  const loading = { phase: 'Running', podIP: '10.0.0.2', containerStatuses: [{ state: { running: {} } }] };

  test('is one replica: its leader answers, and the end of any member is its end', () => {
    expect(observePods([member(1, loading), member(0, serving)], undefined)).toMatchObject([{ replicaId: 'rep_01', phase: 'serving', url: 'http://10.0.0.1:8000' }]);
    expect(observePods([member(0, loading), member(1, serving)], undefined)).toMatchObject([{ phase: 'loading' }]);
    expect(observePods([member(0, serving), member(1, { phase: 'Failed', reason: 'Evicted' })], undefined)).toMatchObject([{ phase: 'ended', end: { wasAsked: false } }]);
    expect(observePods([member(0, serving), member(1, loading, '2026-11-29T12:00:00Z')], undefined)).toMatchObject([{ phase: 'ending' }]);
    const stuck = { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no GPU' }] };
    expect(observePods([member(0, loading), member(1, stuck)], undefined)).toMatchObject([{ phase: 'loading', blocked: { code: 'start_timeout' } }]);
  });
});

describe('a node', () => {
  test('says what fails with it, its market and its taints, those that every Pod of ours tolerates left out', () => {
    const tainted = kubeNode.parse({ ...node({ labels: { 'topology.kubernetes.io/rack': 'r7', 'karpenter.sh/capacity-type': 'spot' } }), spec: { taints: [{ key: 'nvidia.com/gpu', effect: 'NoSchedule' }, { key: 'team', value: 'a', effect: 'NoSchedule' }, { key: 'soft', effect: 'PreferNoSchedule' }] } });
    expect(observeNode(tainted, [], reading)?.driven.report).toMatchObject({ failureDomain: 'r7', market: 'spot', taints: ['team=a:NoSchedule'] });
    expect(observeNode(node(), [], reading)?.driven.report).toMatchObject({ failureDomain: nodeIdOf('main', uid), market: 'on_demand', taints: [] });
  });

  test('offers its GPUs with their usable memory', () => {
    const observed = observeNode(node(), [], reading);
    expect(observed?.driven.report).toMatchObject({ nodeId: nodeIdOf('main', uid), hostname: 'gpu-1.example', cpuCores: 7, memoryBytes: 64 * 2 ** 30 });
    expect(observed?.driven.report.accelerators.map(({ type, memoryBytes, device }) => [type, memoryBytes, device])).toEqual([1, 2].map(() => ['h100', 81_559 * 1_048_576, 'k8s:nvidia.com/gpu']));
  });

  test('offers slices under the mixed strategy, and whole resources that are slices under the single one', () => {
    const mixed = observeNode(node({ allocatable: { 'nvidia.com/gpu': '1', 'nvidia.com/mig-1g.10gb': '2' }, labels: { 'nvidia.com/mig-1g.10gb.memory': '9856' } }), [], reading);
    expect(mixed?.driven.report.accelerators.map(({ type, memoryBytes }) => [type, memoryBytes])).toEqual([['h100', 81_559 * 1_048_576], ...[1, 2].map(() => ['h100-mig-1g.10gb', 9_856 * 1_048_576])]);
    const single = observeNode(node({ allocatable: { 'nvidia.com/gpu': '7' }, labels: { 'nvidia.com/gpu.product': 'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb', 'nvidia.com/gpu.memory': '4864' } }), [], reading);
    expect(new Set(single?.driven.report.accelerators.map((accelerator) => accelerator.type))).toEqual(new Set(['a100-mig-1g.5gb']));
  });

  test('offers what a DRA driver publishes for it, device by device, and nothing that cannot be told apart', () => {
    const slice = kubeResourceSlice.parse({
      metadata: { name: 's', uid },
      spec: {
        driver: 'gpu.nvidia.com', nodeName: 'gpu-1.example',
        devices: [
          { name: 'gpu-0', attributes: { uuid: { string: 'GPU-1' }, productName: { string: 'NVIDIA L4' } }, capacity: { memory: { value: '23034Mi' } } },
          { name: 'gpu-0-mig-1', attributes: { uuid: { string: 'MIG-1' }, productName: { string: 'NVIDIA A100-SXM4-80GB' }, profile: { string: '1g.10gb' } }, capacity: { memory: { value: '9728Mi' } } },
          { name: 'odd', attributes: { uuid: { string: '" || true || "' } }, capacity: { memory: { value: '1Gi' } } },
        ],
      },
    });
    const observed = observeNode(node({ allocatable: {} }), [slice], reading);
    expect([...(observed?.devices.values() ?? [])].map((device) => [device.accelerator.type, device.request])).toEqual([
      ['l4', { kind: 'claim', deviceClass: 'gpu.nvidia.com', expression: 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].uuid == "GPU-1"' }],
      ['a100-mig-1g.10gb', { kind: 'claim', deviceClass: 'mig.nvidia.com', expression: 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].uuid == "MIG-1"' }],
    ]);
    expect(observeNode(node({ allocatable: {} }), [{ ...slice, spec: { ...slice.spec, nodeName: 'other' } }], reading)).toBeUndefined();
  });

  test('offers nothing while it is cordoned, but still knows its devices; without devices it is none of ours', () => {
    const cordoned = observeNode(node({ unschedulable: true }), [], reading);
    expect([cordoned?.driven.report.accelerators.length, cordoned?.devices.size]).toEqual([0, 2]);
    expect(observeNode(node({ allocatable: {} }), [], reading)).toBeUndefined();
  });

  test('is not ready when Kubernetes says so, and says why', () => {
    expect(observeNode(node({ ready: 'Unknown' }), [], reading)?.driven).toMatchObject({ isReady: false, reason: expect.stringContaining('KubeletReady') });
  });
});

describe('a Pod', () => {
  const pod = (status: object, more: { deletionTimestamp?: string; nodeName?: string } = {}) => kubePod.parse({
    metadata: { name: 'rep-01', uid, labels: { 'penstock.dev/replica-id': 'rep_01' }, ...(more.deletionTimestamp === undefined ? {} : { deletionTimestamp: more.deletionTimestamp }) },
    spec: { nodeName: more.nodeName ?? 'gpu-1' }, status,
  });
  const ready = [{ type: 'Ready', status: 'True' }];

  test.each([
    ['waiting', pod({}, { nodeName: '' })],
    ['pulling', pod({ containerStatuses: [{ state: { waiting: { reason: 'ContainerCreating' } } }] })],
    ['loading', pod({ phase: 'Running', containerStatuses: [{ state: { running: {} } }] })],
    ['serving', pod({ phase: 'Running', podIP: '10.0.0.7', conditions: ready })],
    ['ending', pod({ phase: 'Running', conditions: ready }, { deletionTimestamp: '2026-11-29T12:00:00Z' })],
    ['ended', pod({ phase: 'Failed' })],
  ])('is %s', (phase, observed) => {
    expect(observePod(observed, undefined)?.phase).toBe(phase);
  });

  test('has the address of its own, in brackets where it needs them, unless another one is given', () => {
    expect(observePod(pod({ podIP: '10.0.0.7' }), undefined)?.url).toBe('http://10.0.0.7:8000');
    expect(observePod(pod({ podIP: 'fd00::7' }), undefined)?.url).toBe('http://[fd00::7]:8000');
    expect(observePod(pod({}), 'http://127.0.0.1:9')?.url).toBe('http://127.0.0.1:9');
  });

  test('says what holds it up', () => {
    expect(observePod(pod({ conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'Insufficient nvidia.com/gpu' }] }, { nodeName: '' }), undefined)?.blocked).toEqual({ code: 'start_timeout', reason: 'Kubernetes cannot schedule its Pod (Unschedulable): Insufficient nvidia.com/gpu' });
    expect(observePod(pod({ containerStatuses: [{ state: { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } } }] }), undefined)?.blocked?.code).toBe('pull_failed');
  });

  test('says how it ended', () => {
    expect(observePod(pod({ phase: 'Failed', containerStatuses: [{ state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }] }), undefined)?.end).toEqual({ wasAsked: false, reason: 'The engine ended with exit code 137 (OOMKilled)' });
    expect(observeDeletedPod(pod({ conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'Eviction API: evicting' }] }))?.end).toEqual({ wasAsked: true, reason: 'its Pod was evicted (EvictionByEvictionAPI): Eviction API: evicting' });
  });
});

test('quantities', () => {
  expect(['8', '7500m', '128Gi', '1.5G', undefined, '', '5x', '-1'].map(parseQuantity)).toEqual([8, 7.5, 128 * 2 ** 30, 1.5e9, undefined, undefined, undefined, undefined]);
  fc.assert(fc.property(fc.nat(), (value) => parseQuantity(String(value)) === value));
});
