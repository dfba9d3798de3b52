import {
  GPU_TYPES,
  gpuTypeOf,
  hardwareHint,
  kneeOf,
  MODEL_FACTS,
  nodeShapeOf,
  optionsFor,
  profilesOn,
  type FleetDemand,
  type FleetHardware,
  type FleetNode,
  type GpuType,
  type LatencyObjective,
  type ModelFacts,
  type ReplicaProfile,
  type RequestShape,
} from '@penstock/domain-placement';

/** How the GPUs of a fleet are divided, and how many nodes share a rack. */
const FLEET = [
  { shape: 'hgx-8xH100-SXM', share: 0.3, sharing: 'shares', nodesPerRack: 4 },
  { shape: 'hgx-8xA100-SXM', share: 0.3, sharing: 'mig', nodesPerRack: 4 },
  { shape: 'l4-8x', share: 0.4, sharing: 'shares', nodesPerRack: 8 },
] as const;

interface Kind {
  readonly shape: RequestShape;
  readonly objective: LatencyObjective;
  readonly share: number;
}

/** Interactive chat, answers from documents, and work that may take its time; texts to embed or to judge. */
const CHAT: readonly Kind[] = [
  { shape: { promptTokens: 600, completionTokens: 250 }, objective: { ttftMs: 2_000, itlMs: 80 }, share: 0.6 },
  { shape: { promptTokens: 3_000, completionTokens: 300 }, objective: { ttftMs: 3_000, itlMs: 100 }, share: 0.25 },
  { shape: { promptTokens: 1_000, completionTokens: 400 }, objective: { ttftMs: 10_000, itlMs: 250 }, share: 0.15 },
];
const TEXTS: Kind = { shape: { promptTokens: 400, completionTokens: 0 }, objective: { ttftMs: 400, itlMs: 0 }, share: 1 };

/** Rates follow a log-normal law: the middle of it, in requests per second, and its width. */
const RATE_MEDIAN = 2.4;
const RATE_SIGMA = 1.8;
const RATE_MAX = 250;

/** Texts are embedded more often than chats are held. */
const TEXT_RATE_TIMES = 12;

/** Precisions in the order in which an owner prefers them; what the files have is used. */
const PRECISIONS = ['fp8', 'mxfp4', 'fp16', 'bf16'];

export function hardware(): readonly FleetHardware[] {
  return FLEET.map(({ shape, sharing }) => {
    const node = nodeShapeOf(shape);
    const gpu = gpuTypeOf(node?.gpuType ?? '');
    if (node === undefined || gpu === undefined) throw new Error(`The catalogue has no ${shape}.`);
    const island = node.islands[0]?.length ?? 1;
    return { gpu, sharing, tensorParallel: [1, 2, 4, 8].filter((size) => size <= island), gangPerNode: island >= 8 ? 8 : 0 };
  });
}

/** A fleet of about so many GPUs. The kinds of node are mixed in one order that does not depend on chance. */
export function buildFleet(gpus: number): readonly FleetNode[] {
  return FLEET.flatMap(({ shape, share, sharing, nodesPerRack }) => {
    const node = nodeShapeOf(shape);
    const gpu = gpuTypeOf(node?.gpuType ?? '');
    if (node === undefined || gpu === undefined) throw new Error(`The catalogue has no ${shape}.`);
    return Array.from({ length: Math.round((gpus * share) / node.gpus) }, (_, index): FleetNode => ({
      nodeId: `${shape}-${index}`,
      gpuType: node.gpuType,
      gpus: node.gpus,
      islands: node.islands,
      vramMib: gpu.usableMib,
      cpuMilli: node.cpuMilli,
      hostMemoryMib: node.hostMemoryMib,
      failureDomain: `${shape}-rack-${Math.floor(index / nodesPerRack)}`,
      sharing,
      market: 'on_demand',
      pricePerGpu: gpu.price.onDemand ?? 0,
      taints: [],
      isCordoned: false,
    }));
  });
}

/** An endpoint with what it would need if it had GPUs of its own. */
export interface ScaledDemand extends FleetDemand {
  readonly ownGpus: number;
}

/** Makes endpoints one after the other, each from the numbers it is given. */
export class Endpoints {
  private readonly hardware = hardware();
  private readonly profiles = new Map<string, readonly ReplicaProfile[]>();
  private made = 0;

  constructor(private readonly next: () => number) {}

  take(count: number): readonly ScaledDemand[] {
    return Array.from({ length: count }, () => this.one());
  }

  private one(): ScaledDemand {
    const model = this.pickModel();
    const kind = model.kind === 'llm' ? this.pickKind() : TEXTS;
    const rate = Math.min(RATE_MAX, RATE_MEDIAN * Math.exp(RATE_SIGMA * this.normal())) * (model.kind === 'llm' ? largeModelsAreRarer(model) : TEXT_RATE_TIMES);
    const precisions = PRECISIONS.filter((precision) => model.weightBytes[precision] !== undefined).slice(0, 2);
    const profiles = this.profilesOf(model, precisions, kind.shape);
    const options = optionsFor(model, profiles, this.hardware, rate, kind.objective);
    this.made += 1;
    return {
      endpointId: `endpoint-${String(this.made).padStart(6, '0')}`,
      options,
      hint: options.length > 0 ? '' : hardwareHint(model, precisions, this.hardware, GPU_TYPES, kind.shape),
      allowsSpot: false,
      pinnedNodeIds: null,
      tolerations: [],
      ownGpus: ownGpus(profiles, this.hardware.map((one) => one.gpu), rate, kind.objective),
    };
  }

  private profilesOf(model: ModelFacts, precisions: readonly string[], shape: RequestShape): readonly ReplicaProfile[] {
    const key = `${model.id}/${shape.promptTokens}/${shape.completionTokens}`;
    const known = this.profiles.get(key);
    if (known !== undefined) return known;
    const made = profilesOn(model, precisions, this.hardware, shape);
    this.profiles.set(key, made);
    return made;
  }

  /** Small models are deployed more often: the chance falls with the square root of the size. */
  private pickModel(): ModelFacts {
    const weights = MODEL_FACTS.map((model) => 1 / Math.sqrt(Math.max(1e9, model.params)));
    let left = this.next() * weights.reduce((sum, weight) => sum + weight, 0);
    for (const [index, model] of MODEL_FACTS.entries()) {
      left -= weights[index] as number;
      if (left < 0) return model;
    }
    return MODEL_FACTS[0] as ModelFacts;
  }

  private pickKind(): Kind {
    let left = this.next();
    for (const kind of CHAT) {
      left -= kind.share;
      if (left < 0) return kind;
    }
    return CHAT[0] as Kind;
  }

  /** Box and Muller. */
  private normal(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }
}

function largeModelsAreRarer(model: ModelFacts): number {
  return Math.min(1, Math.sqrt(8e9 / model.activeParams));
}

/** GPUs of the cheapest hardware when every endpoint has its own, as is common without a planner. */
function ownGpus(profiles: readonly ReplicaProfile[], gpus: readonly GpuType[], ratePerS: number, objective: LatencyObjective): number {
  let best = { price: Number.POSITIVE_INFINITY, gpus: 0 };
  for (const profile of profiles) {
    const knee = kneeOf(profile, objective);
    if (knee === undefined || profile.device.slice !== null) continue;
    const count = Math.ceil(ratePerS / knee.requestsPerS - 1e-9) * profile.device.tensorParallel;
    const price = count * (gpus.find((gpu) => gpu.type === profile.device.gpuType)?.price.onDemand ?? Number.POSITIVE_INFINITY);
    if (price < best.price) best = { price, gpus: count };
  }
  return best.gpus;
}
