import type { Refusal } from '@penstock/kernel';
import { gpuTypeNamed, GPU_TYPES } from '../catalogue/gpu-types.js';
import { NODE_SHAPES, nodeShapeOf, type NodeShape } from '../catalogue/node-shapes.js';
import type { FleetNode } from '../fleet/fleet-types.js';

/** GPUs that one change may add. */
export const GPUS_ADDED_MAX = 4_096;

export type ImaginedNodes = { readonly kind: 'nodes'; readonly nodes: readonly FleetNode[]; readonly says: readonly string[] } | { readonly kind: 'refused'; readonly refusal: Refusal };

const PATTERN = /^\s*(\d{1,5})\s*x\s*(\S+)\s*$/i;

/**
 * Nodes to add: `2xhgx-8xH100-SXM` is two nodes of a shape, `4xH100` is four GPUs on as few nodes of known shapes as hold exactly
 * them. Each node fails by itself and costs what its type costs on demand.
 */
export function imagineNodes(texts: readonly string[], param: string): ImaginedNodes {
  const shapes: NodeShape[] = [];
  for (const [index, text] of texts.entries()) {
    const where = `${param}[${index}]`;
    const [, countText = '', name = ''] = PATTERN.exec(text) ?? [];
    const count = Number(countText);
    if (name === '' || count < 1) return refused(where, `${text} is no number of nodes: say 4xH100 for GPUs, or 2xhgx-8xH100-SXM for nodes.`);
    const shape = nodeShapeOf(name);
    const found = shape === undefined ? shapesOf(name, count) : Array.from({ length: count }, () => shape);
    if (found === undefined) return refused(where, `${name} is neither a GPU nor a shape of node that is known. GPUs: ${GPU_TYPES.map(({ type }) => type).join(', ')}. Shapes: ${NODE_SHAPES.map((one) => one.shape).join(', ')}.`);
    if (found.length === 0) return refused(where, `No known nodes have ${count} x ${name} together: take another number.`);
    shapes.push(...found);
    if (shapes.reduce((sum, { gpus }) => sum + gpus, 0) > GPUS_ADDED_MAX) return refused(where, `At most ${GPUS_ADDED_MAX} GPUs may be added in one plan.`);
  }
  const nodes = shapes.map((shape, index) => imaginedNode(shape, `imagined-${index + 1}`));
  return { kind: 'nodes', nodes, says: [...Map.groupBy(shapes, ({ shape }) => shape)].map(([shape, all]) => `${all.length} x ${shape}`) };
}

/** A node of the shape that does not exist. */
export function imaginedNode(shape: NodeShape, nodeId: string): FleetNode {
  const gpu = GPU_TYPES.find(({ type }) => type === shape.gpuType);
  return {
    nodeId, gpuType: shape.gpuType, gpus: shape.gpus, islands: shape.islands, vramMib: gpu?.usableMib ?? 0, cpuMilli: shape.cpuMilli, hostMemoryMib: shape.hostMemoryMib, failureDomain: nodeId, sharing: 'shares',
    market: 'on_demand', pricePerGpu: gpu?.price.onDemand ?? 0, taints: [], isCordoned: false,
  };
}

/** The largest known shape with GPUs of a type, for advice; undefined where there is none. */
export function largestShapeWith(gpuType: string): NodeShape | undefined {
  return NODE_SHAPES.filter((shape) => shape.gpuType === gpuType).reduce<NodeShape | undefined>((largest, shape) => (largest === undefined || shape.gpus > largest.gpus ? shape : largest), undefined);
}

/** Large shapes first. Undefined for a name of nothing, empty where the shapes do not add up to the count. */
function shapesOf(name: string, count: number): readonly NodeShape[] | undefined {
  const type = gpuTypeNamed(name);
  if (type === undefined) return undefined;
  const shapes = NODE_SHAPES.filter((shape) => shape.gpuType === type.type).sort((one, other) => other.gpus - one.gpus);
  if (shapes.length === 0) return undefined;
  const found: NodeShape[] = [];
  let left = count;
  for (const shape of shapes) {
    while (shape.gpus <= left) {
      found.push(shape);
      left -= shape.gpus;
    }
  }
  return left === 0 ? found : [];
}

function refused(param: string, message: string): ImaginedNodes {
  return { kind: 'refused', refusal: { code: 'invalid_value', message, param } };
}
