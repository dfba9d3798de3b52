import type { MigInstance } from '../mig/mig-geometry.js';
import { NO_RULES, type Holding, type PlacedReplica, type PlacementAccelerator, type PlacementDemand, type PlacementInput, type PlacementNode } from './placement-input.js';

export const GB = 1_000_000_000;

export function accelerator(acceleratorId: string, usableBytes: number, change: Partial<PlacementAccelerator> = {}): PlacementAccelerator {
  return { acceleratorId, type: 'h100', usableBytes, islandId: 'nvlink', isExclusive: false, migInstances: null, ...change };
}

/** A node with accelerators of the given sizes, all in one island. */
export function node(nodeId: string, memories: readonly number[], overrides: Partial<PlacementNode> = {}, type = 'h100'): PlacementNode {
  return {
    nodeId, hostname: `host-${nodeId}`, accelerators: memories.map((bytes, index) => accelerator(`${nodeId}_acc${index}`, bytes, { type })), engines: [{ kind: 'llama.cpp' }],
    cpuMilli: 64_000, hostMemoryBytes: 1_000 * GB, failureDomain: nodeId, taints: [], market: 'on_demand', dollarsPerGpuHour: null, cordonReason: null, drainReason: null, reclaimAtMs: null, ...overrides,
  };
}

/** An A100 with MIG on. */
export function migNode(nodeId: string, instances: readonly MigInstance[] = [], overrides: Partial<PlacementNode> = {}, gpus = 1): PlacementNode {
  const accelerators = Array.from({ length: gpus }, (_, index) => accelerator(`${nodeId}_acc${index}`, 80_896 * 1_048_576, { type: 'a100', migInstances: index === 0 ? instances : [] }));
  return node(nodeId, [], { accelerators, ...overrides });
}

export function demand(endpointId: string, overrides: Partial<Omit<PlacementDemand, 'rules'>> & { readonly rules?: Partial<PlacementDemand['rules']> } = {}): PlacementDemand {
  const { rules, ...rest } = overrides;
  return {
    endpointId, modelVersionId: `mv_${endpointId}`, engine: 'llama.cpp', acceleratorType: null, acceleratorCount: 1, memoryBytes: 10 * GB, precision: null, profileHoles: [], priority: 0, wanted: 1,
    replicas: [], pending: [], warmNodeIds: new Set(), failuresByNode: new Map(), backoff: null, drainReason: 'fewer are wanted', ...rest, rules: { ...NO_RULES, ...rules },
  };
}

export function input(nodes: readonly PlacementNode[], demands: readonly PlacementDemand[], holdings: readonly Holding[] = []): PlacementInput {
  return { nodes, demands, holdings, nowMs: 1_000_000, typicalStartMs: 60_000, placementsMax: 1_000 };
}

export function holding(nodeId: string, acceleratorIds: readonly string[], reservedBytes: number, change: Partial<Holding> = {}): Holding {
  return { replicaId: 'held', members: [{ nodeId, acceleratorIds }], reservedBytes, computeMilli: 0, cpuMilli: 0, hostMemoryBytes: 0, mig: null, ...change };
}

export function replica(replicaId: string, overrides: Partial<PlacedReplica> = {}): PlacedReplica {
  return { replicaId, nodeIds: ['n1'], isReady: true, placedAtMs: 1, running: null, replaces: null, ...overrides };
}
