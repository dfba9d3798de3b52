import type { adviseDeployment, DeploymentAdviceView, planDeployment, planNodes } from '@penstock/contract-commands';
import type { CatalogState } from '@penstock/domain-catalog';
import type { FleetState } from '@penstock/domain-lifecycle';
import {
  gpuTypeNamed, GPU_TYPES, hardwareHint, imagineNodes, kneeOf, optionsFor, planDeployment as planOne, planFleetChange, precisionNamed, adviseDeployment as adviseOn,
  type ChangePlan, type CommitmentBook, type Figure, type FleetDemand, type FleetHardware, type FleetNode, type LatencyObjective, type ReplicaProfile, type RequestShape,
} from '@penstock/domain-placement';
import { ok, refused, type HandlerOutcome } from '@penstock/feature-shell';
import type { Clock, LiveProjection, Refusal } from '@penstock/kernel';
import type { z } from 'zod';
import { isExact, requiredType } from '../exact-hardware.js';
import { gpuNameOf, hardwareOf, liveFleet, type LiveFleet } from '../live-fleet.js';
import { agreedObjective, findModel, profilesOf, type ModelKnowledge } from './model-knowledge.js';

type Imagined = z.output<typeof planDeployment.request>;

export interface PlanDeskParts {
  readonly fleet: LiveProjection<FleetState>;
  readonly catalog: LiveProjection<CatalogState>;
  readonly book: LiveProjection<CommitmentBook>;
  readonly clock: Clock;
}

/** A deployment that is thought of, with everything that is known about it. */
interface Question {
  readonly imagined: Imagined;
  readonly knowledge: ModelKnowledge;
  readonly precision: string;
  readonly gpuType: string | null;
  /** By the question, or as the endpoint is deployed. */
  readonly isExact: boolean;
  readonly shape: RequestShape;
  readonly objective: LatencyObjective;
  readonly fleet: FleetState;
  readonly live: LiveFleet;
  /** Of the fleet. */
  readonly hardware: readonly FleetHardware[];
  /** At the precision, on the fleet's hardware of the type. */
  readonly profiles: readonly ReplicaProfile[];
  readonly refusedProfiles: readonly string[];
  readonly ratePerS: number;
}

/** Precisions that advice compares, beside the one that is registered. */
const COMPARED_PRECISIONS = ['bf16', 'fp8', 'int8', 'int4'];
/** Requests per second that are planned for where neither a rate nor a profile says anything. */
const RATE_ASSUMED = 1;
const PROFILES_TOLD_MAX = 50;
const MOVES_TOLD_MAX = 500;

/** Answers what would be, from the fleet as it is. Changes nothing. */
export class PlanDesk {
  constructor(private readonly parts: PlanDeskParts) {}

  deployment(imagined: Imagined): HandlerOutcome<z.input<typeof planDeployment.reply>> {
    const question = this.ask(imagined);
    if ('code' in question) return refused(question);
    const { knowledge, profiles, objective, hardware, ratePerS, isExact: mustBeExact } = question;
    const options = profiles.flatMap((profile) => optionsFor(knowledge, [profile], hardware, ratePerS, objective));
    const demand: FleetDemand = { endpointId: `planned ${knowledge.name}`, options, hint: hintOf(question), allowsSpot: imagined.allowsSpot, pinnedNodeIds: null, tolerations: knowledge.endpoint?.rules?.tolerations ?? [] };
    const plan = planOne({ ...question.live, ...this.commitments() }, demand);
    return ok({ plan: tell(plan, question.live), requestsPerS: ratePerS, isExact: mustBeExact, profiles: profiles.slice(0, PROFILES_TOLD_MAX).map((profile) => tellProfile(profile, objective)), advice: advise(question) });
  }

  advice(imagined: Imagined): HandlerOutcome<z.input<typeof adviseDeployment.reply>> {
    const question = this.ask(imagined);
    return 'code' in question ? refused(question) : ok({ advice: advise(question) });
  }

  nodes({ add, removeNodeIds, loseDomains }: z.output<typeof planNodes.request>): HandlerOutcome<z.input<typeof planNodes.reply>> {
    if (add.length + removeNodeIds.length + loseDomains.length === 0) return refused({ code: 'missing_required_parameter', message: 'Nothing changes: name nodes to add, to remove, or a failure domain to lose.', param: 'add' });
    const imagined = imagineNodes(add, 'add');
    if (imagined.kind === 'refused') return refused(imagined.refusal);
    const live = liveFleet(this.parts.fleet.state(), this.parts.catalog.state(), this.parts.clock.now());
    for (const [index, nodeId] of removeNodeIds.entries()) if (live.plannedIdsOf(nodeId).length === 0) return refused({ code: 'not_found', message: `No node ${nodeId} is up; look at the fleet for the ids of nodes.`, param: `removeNodeIds[${index}]` });
    const domains = new Set(live.nodes.map(({ failureDomain }) => failureDomain));
    for (const [index, domain] of loseDomains.entries()) if (!domains.has(domain)) return refused({ code: 'not_found', message: `No node that is up stands in the failure domain ${domain}; known ones are ${[...domains].slice(0, 20).join(', ') || 'none'}.`, param: `loseDomains[${index}]` });
    const plan = planFleetChange({ ...live, ...this.commitments() }, { add: imagined.nodes.map((node) => likeOwn(node, live)), removeNodeIds: new Set(removeNodeIds.flatMap(live.plannedIdsOf)), loseDomains: new Set(loseDomains) });
    return ok({ plan: tell(plan, live), added: [...imagined.says] });
  }

  private commitments() {
    return { commitments: [...this.parts.book.state().standing.values()], nowMs: this.parts.clock.now() };
  }

  private ask(imagined: Imagined): Question | Refusal {
    const { fleet, catalog } = this.parts;
    const knowledge = findModel(catalog.state(), imagined.model, imagined.organisationId);
    if (knowledge === undefined) return { code: 'model_not_found', message: `No endpoint, model version or well-known model is called ${imagined.model}. Give a name from the list of models, or a repository such as meta-llama/Llama-3.1-8B-Instruct.`, param: 'model' };
    const live = liveFleet(fleet.state(), catalog.state(), this.parts.clock.now());
    const required = knowledge.endpoint === null ? null : requiredType(knowledge.endpoint, fleet.state());
    const own = imagined.gpuType ?? required;
    const gpuType = own === null ? null : gpuNameOf(own);
    if (imagined.gpuType !== null && gpuTypeNamed(imagined.gpuType) === undefined && !live.nodes.some((node) => node.gpuType === gpuType)) return { code: 'invalid_value', message: `No GPU of type ${imagined.gpuType} is known. Take one of ${GPU_TYPES.map(({ type }) => type).join(', ')}, or leave it out.`, param: 'gpuType' };
    const precision = imagined.precision === null ? knowledge.precision : precisionNamed(imagined.precision);
    const known = Object.keys(knowledge.model?.weightBytes ?? {});
    if (knowledge.model !== null && !known.includes(precision)) return { code: 'invalid_value', message: `${precision} is no precision of ${knowledge.name}. Take one of ${known.join(', ')}.`, param: 'precision' };
    const changed = isExact(knowledge.endpoint) ? changeOfBits(knowledge, precision, gpuType, required) : undefined;
    if (changed !== undefined) return changed;
    const objective = agreedObjective(imagined.latencyClass, imagined.ttftMs, imagined.itlMs);
    const shape: RequestShape = { promptTokens: imagined.promptTokens, completionTokens: knowledge.model !== null && knowledge.model.kind !== 'llm' ? 0 : imagined.completionTokens };
    const count = imagined.gpuCount ?? (knowledge.endpoint === null ? null : knowledge.endpoint.hardware.acceleratorCount);
    const hardware = hardwareOf(live.nodes.filter((node) => gpuType === null || node.gpuType === gpuType), count === null ? undefined : [count]);
    const answer = profilesOf(knowledge, fleet.state(), [precision], hardware, shape);
    // A replica is on the smallest hardware that keeps the objective.
    const [knee] = answer.profiles.toSorted((one, other) => one.device.tensorParallel - other.device.tensorParallel).flatMap((profile) => kneeOf(profile, objective)?.requestsPerS ?? []);
    const ratePerS = imagined.requestsPerS ?? (knee === undefined ? RATE_ASSUMED : imagined.replicas * knee);
    return { imagined, knowledge, precision, gpuType, isExact: imagined.isExact || isExact(knowledge.endpoint), shape, objective, fleet: fleet.state(), live, hardware, profiles: answer.profiles, ratePerS, refusedProfiles: answer.refused.map((one) => `${one.missing.join(', ')} of the measurement on ${one.gpuType}`) };
  }
}

/** An endpoint that is to give the same bits is not planned with others. */
function changeOfBits({ name, precision: own }: ModelKnowledge, precision: string, gpuType: string | null, required: string | null): Refusal | undefined {
  const next = 'Leave it out, or plan for its model version instead of the endpoint.';
  if (precision !== own) return { code: 'invalid_value', message: `${name} is deployed with exact_reproducibility at ${own}, and ${precision} gives other bits. ${next}`, param: 'precision' };
  if (required === null || gpuType === null || gpuType === gpuNameOf(required)) return undefined;
  return { code: 'invalid_value', message: `${name} is deployed with exact_reproducibility on ${gpuNameOf(required)}, and ${gpuType} rounds otherwise. ${next}`, param: 'gpuType' };
}

/** A node that is thought of has the memory and the price of those of its kind that are there. */
function likeOwn(node: FleetNode, { nodes }: LiveFleet): FleetNode {
  const own = nodes.find((one) => one.gpuType === node.gpuType && one.sharing === node.sharing && one.market === node.market);
  return own === undefined ? node : { ...node, vramMib: own.vramMib, pricePerGpu: own.pricePerGpu };
}

function hintOf({ knowledge, precision, hardware, shape, refusedProfiles, live }: Question): string {
  if (live.nodes.length === 0) return 'no node is up: start an agent, or try the plan with nodes to add';
  if (knowledge.model === null) return `too little is known of ${knowledge.name} for a plan; missing: ${[...knowledge.missing, ...refusedProfiles].join(', ')}. Name the repository of a well-known model instead, or let a replica be measured`;
  if (hardware.length === 0) return 'no node of the fleet has that type of GPU: add one, or leave the type out';
  return hardwareHint(knowledge.model, [precision], hardware, GPU_TYPES, shape);
}

/** Compares the fleet's hardware and all that the catalogue has a price for. */
function advise({ knowledge, precision, gpuType, shape, objective, fleet, live, ratePerS, refusedProfiles, isExact: mustBeExact }: Question): DeploymentAdviceView {
  if (knowledge.model === null) {
    return noAdvice(`Too little is known of ${knowledge.name} for advice; missing: ${[...knowledge.missing, ...refusedProfiles].join(', ')}.`);
  }
  const own = hardwareOf(live.nodes).filter(({ gpu }) => gpu.bandwidthGbPerS > 0);
  // What runs on processors of our own is not compared with GPUs that would have to be bought.
  const isElsewhere = gpuType === null ? knowledge.endpoint !== null && own.length === 0 : gpuTypeNamed(gpuType) === undefined;
  if (isElsewhere) return noAdvice(`Neither speed nor price of ${gpuType ?? 'the hardware of this fleet'} is known, so there is nothing to compare.`);
  const others = GPU_TYPES.filter((gpu) => gpu.price.onDemand !== null && !own.some((one) => one.gpu.type === gpu.type)).map((gpu): FleetHardware => ({ gpu, sharing: 'shares', tensorParallel: gpu.nvlinkGbPerS > 0 ? [1, 2, 4, 8] : [1], gangPerNode: 0 }));
  const hardware = [...own, ...others];
  const precisions = [...new Set([precision, ...COMPARED_PRECISIONS])];
  const { profiles } = profilesOf(knowledge, fleet, precisions, hardware, shape);
  const price = (type: string): number | null => live.nodes.find((node) => node.gpuType === type && node.market === 'on_demand')?.pricePerGpu ?? gpuTypeNamed(type)?.price.onDemand ?? null;
  const advice = adviseOn({ model: knowledge.model, precision, gpuType, profiles, hardware, ratePerS, objective, pricePerGpu: price, isExact: mustBeExact });
  return { ...advice, others: [...advice.others], vetoes: [...advice.vetoes] };
}

function noAdvice(says: string): DeploymentAdviceView {
  return { kind: 'unknown', current: null, best: null, savedDollarsPerHour: 0, savedPercent: 0, others: [], vetoes: [], says };
}

/** The planner's nodes are told as the fleet's. */
function tell(plan: ChangePlan, { nodeIdOf }: LiveFleet): z.input<typeof planDeployment.reply>['plan'] {
  const members = (all: ChangePlan['placed'][number]['members']) => all.map(({ nodeId, gpus }) => ({ nodeId: nodeIdOf(nodeId), gpus: [...gpus] }));
  return {
    ...plan, placed: plan.placed.map((seat) => ({ ...seat, members: members(seat.members) })), refused: [...plan.refused], brokenReservations: [...plan.brokenReservations],
    moves: plan.moves.slice(0, MOVES_TOLD_MAX).map((move) => ({ ...move, members: members(move.members), fromNodeIds: move.fromNodeIds.map(nodeIdOf) })),
  };
}

function tellProfile(profile: ReplicaProfile, objective: LatencyObjective): z.input<typeof planDeployment.reply>['profiles'][number] {
  const { device, precision, weightBytes, kvTokens } = profile;
  const told = (figure: Figure): Figure | null => (Number.isNaN(figure.value) ? null : figure);
  return { ...device, precision, weightBytes: told(weightBytes), kvTokens: told(kvTokens), knee: kneeOf(profile, objective) ?? null };
}
