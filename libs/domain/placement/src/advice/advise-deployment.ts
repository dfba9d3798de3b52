import type { ModelFacts } from '../catalogue/model-facts.js';
import { gpusOf } from '../commitments/capacity-options.js';
import { optionsFor, type FleetHardware } from '../fleet/fleet-options.js';
import type { FleetOption } from '../fleet/fleet-types.js';
import { weakestSource, type FigureSource, type LatencyObjective, type ReplicaProfile } from '../profiles/replica-profile.js';
import { qualityFinding, type QualityFinding } from './quality-loss.js';

export interface AdviceQuestion {
  readonly model: ModelFacts;
  /** Precision of the weights as they are. */
  readonly precision: string;
  /** The type of GPU that was asked for; null for any. */
  readonly gpuType: string | null;
  /** At every precision and on all hardware that is to be compared. */
  readonly profiles: readonly ReplicaProfile[];
  readonly hardware: readonly FleetHardware[];
  readonly ratePerS: number;
  readonly objective: LatencyObjective;
  readonly pricePerGpu: (gpuType: string) => number | null;
  /** The same request is to give the same bits, today and next year. */
  readonly isExact: boolean;
}

/** One way to serve the rate within the objective. */
export interface AdvisedWay {
  readonly gpuType: string;
  readonly precision: string;
  readonly replicas: number;
  /** GPUs' worth. */
  readonly gpus: number;
  readonly dollarsPerHour: number;
  readonly figuresFrom: FigureSource;
  /** null for the precision as it is, and where nobody published anything. */
  readonly quality: QualityFinding | null;
}

export interface AdviceVeto {
  readonly what: 'quantisation' | 'hardware';
  readonly reason: string;
}

export interface DeploymentAdvice {
  readonly kind: 'better' | 'keep' | 'unreachable';
  /** The cheapest way with the deployment as it is; null where it does not keep the objective. */
  readonly current: AdvisedWay | null;
  /** The cheapest way that no veto stands against; null where none keeps the objective. */
  readonly best: AdvisedWay | null;
  readonly savedDollarsPerHour: number;
  readonly savedPercent: number;
  /** Other ways, the cheapest first. */
  readonly others: readonly AdvisedWay[];
  readonly vetoes: readonly AdviceVeto[];
  /** In words, with the next step. */
  readonly says: string;
}

/** A change that saves less than this is not worth the trouble. */
const SAVED_PERCENT_MIN = 5;
const OTHERS_MAX = 5;

/** Kinds of models whose numbers are the answer: vectors that were stored before are compared with those of tomorrow. */
const EXACT_KINDS: ReadonlySet<string> = new Set(['embedding', 'reranker', 'classifier', 'tensor']);

/** Which precision and hardware serve the rate within the objective for the fewest dollars, unless a veto stands against it. */
export function adviseDeployment(question: AdviceQuestion): DeploymentAdvice {
  const { precision, gpuType } = question;
  const ways = waysOf(question);
  const vetoes = vetoesOf(question);
  const isVetoed = (what: AdviceVeto['what']): boolean => vetoes.some((veto) => veto.what === what);
  const allowed = ways.filter((way) => (way.precision === precision || !isVetoed('quantisation')) && (gpuType === null || way.gpuType === gpuType || !isVetoed('hardware')));
  const asked = ways.filter((way) => way.precision === precision && (gpuType === null || way.gpuType === gpuType));
  const current = asked[0] ?? null;
  // Where no hardware was named, a veto on hardware stays with what the deployment would get.
  const best = (isVetoed('hardware') && gpuType === null ? current : allowed[0]) ?? null;
  const saved = current === null || best === null ? 0 : current.dollarsPerHour - best.dollarsPerHour;
  const savedPercent = current === null || current.dollarsPerHour === 0 ? 0 : (100 * saved) / current.dollarsPerHour;
  const kind = best === null ? 'unreachable' : current === null || savedPercent >= SAVED_PERCENT_MIN ? 'better' : 'keep';
  const others = allowed.filter((way) => way !== best && way !== current).slice(0, OTHERS_MAX);
  return { kind, current, best, savedDollarsPerHour: kind === 'better' ? saved : 0, savedPercent: kind === 'better' ? savedPercent : 0, others, vetoes, says: wordsOf(kind, question, current, best, saved, savedPercent) };
}

function waysOf(question: AdviceQuestion): readonly AdvisedWay[] {
  const { model, profiles, hardware, ratePerS, objective } = question;
  const ways = profiles.flatMap((profile) => optionsFor(model, [profile], hardware, ratePerS, objective).flatMap((option) => wayOf(question, profile, option) ?? []));
  const cheapest = new Map<string, AdvisedWay>();
  for (const way of ways) {
    const key = `${way.gpuType} ${way.precision}`;
    const known = cheapest.get(key);
    if (known === undefined || way.dollarsPerHour < known.dollarsPerHour) cheapest.set(key, way);
  }
  return [...cheapest.values()].sort((one, other) => one.dollarsPerHour - other.dollarsPerHour || (one.gpuType < other.gpuType ? -1 : 1));
}

/** Hardware without a price cannot be compared. */
function wayOf({ model, precision, objective, pricePerGpu }: AdviceQuestion, profile: ReplicaProfile, option: FleetOption): AdvisedWay | undefined {
  const price = pricePerGpu(option.gpuType);
  if (price === null) return undefined;
  const gpus = gpusOf(option);
  return {
    gpuType: option.gpuType, precision: option.precision, replicas: option.parts.length, gpus, dollarsPerHour: price * gpus, figuresFrom: weakestSource(profile, objective),
    quality: option.precision === precision ? null : (qualityFinding(model.id, option.precision) ?? null),
  };
}

function vetoesOf({ model, isExact }: AdviceQuestion): readonly AdviceVeto[] {
  const vetoes: AdviceVeto[] = [];
  if (EXACT_KINDS.has(model.kind)) vetoes.push({ what: 'quantisation', reason: `${model.id} answers with numbers (${model.kind}): other weights or a narrower cache would change them, and what was stored before would not match any more` });
  else if (isExact) vetoes.push({ what: 'quantisation', reason: 'exact reproducibility was asked for: other weights give other answers' });
  if (isExact) vetoes.push({ what: 'hardware', reason: 'exact reproducibility was asked for: another type of GPU rounds otherwise' });
  return vetoes;
}

function wordsOf(kind: DeploymentAdvice['kind'], { precision, objective, ratePerS }: AdviceQuestion, current: AdvisedWay | null, best: AdvisedWay | null, saved: number, savedPercent: number): string {
  const target = `${Math.round(ratePerS * 100) / 100} requests/s within ${objective.ttftMs} ms and ${objective.itlMs} ms`;
  if (best === null) return `No known way serves ${target} at ${precision}: allow another precision, other hardware or a longer latency.`;
  const way = `${best.replicas} ${best.replicas === 1 ? 'replica' : 'replicas'} on ${Math.ceil(best.gpus * 100) / 100} x ${best.gpuType} at ${best.precision} for $${best.dollarsPerHour.toFixed(2)}/h`;
  if (kind === 'keep') return `Nothing known serves ${target} for noticeably less than ${way}.`;
  const step = best.precision === precision ? `Deploy on ${best.gpuType}.` : `Register a version with ${best.precision} weights, evaluate it, and deploy it on ${best.gpuType}.`;
  const loss = best.precision === precision ? '' : best.quality === null ? ' Nobody published what the precision loses of this model.' : best.quality.lossPercent === 0 ? ` No loss was found on ${best.quality.benchmark} (${best.quality.source}).` : ` It loses ${best.quality.lossPercent} % on ${best.quality.benchmark} (${best.quality.source}).`;
  if (current === null) return `As asked for, it does not serve ${target}; ${way} would. ${step}${loss}`;
  return `${way} would serve ${target} and save $${saved.toFixed(2)}/h (${savedPercent.toFixed(0)} %). ${step}${loss}`;
}
