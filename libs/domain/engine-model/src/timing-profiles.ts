import { z } from 'zod';
import { datasheetStepTime } from './datasheet-step-time.js';
import { kvTokensThatFit } from './memory-law.js';
import type { AcceleratorShape, ModelShape } from './model-shape.js';
import type { LinearStepTime } from './step-time.js';
import data from './timing-profiles.json' with { type: 'json' };

const positive = z.number().positive();
const shape = z.strictObject({ parameters: positive, layers: positive, hidden: positive, kvHeads: positive, headSize: positive, vocabulary: positive });
const accelerator = z.strictObject({ memoryBytes: positive, memoryGBps: positive, tflops16: positive, tflops8: positive.exactOptional(), linkGBps: positive });
const coefficient = z.number().min(0);
const profile = z.strictObject({
  name: z.string(), model: z.string(), accelerator: z.string(), tensorParallel: positive, weightBytes: positive,
  step: z.strictObject({ baseMs: coefficient, decodeUs: coefficient, prefillUs: coefficient, contextNs: coefficient, attentionNs: coefficient }),
  status: z.enum(['measured', 'derived', 'datasheet']),
  source: z.string(),
});
const file = z.strictObject({ source: z.string(), models: z.record(z.string(), shape), accelerators: z.record(z.string(), accelerator), profiles: z.array(profile) });

/** What is known of one model on one kind of accelerator. */
export interface TimingProfile {
  /** Such as `4xh100-llama-3.1-70b-fp8`. */
  readonly name: string;
  readonly tensorParallel: number;
  readonly step: LinearStepTime;
  /** Tokens in the key-value cache, by the memory law. */
  readonly kvTokens: number;
  /** Where the step time comes from: measurements, other measurements and a scaling, or both datasheets alone. */
  readonly status: 'measured' | 'derived' | 'datasheet';
  readonly source: string;
}

const KV_BYTES = 2;
const facts = file.parse(data);

/** Shapes of the models that the profiles name. */
export const modelShapes: Readonly<Record<string, ModelShape>> = facts.models;
/** Accelerators that the profiles name. */
export const acceleratorShapes: Readonly<Record<string, AcceleratorShape>> = facts.accelerators;

export const timingProfileNames: readonly string[] = facts.profiles.map(({ name }) => name);

export class UnknownTimingProfile extends RangeError {
  override readonly name = 'UnknownTimingProfile';
}

/**
 * The profile of this name. A name `<N>x<accelerator>-<model>[-fp8]` of known parts that nobody has measured gives the datasheets'
 * step time. Throws {@link UnknownTimingProfile}, which lists what there is, and for models that do not fit.
 */
export function timingProfile(name: string): TimingProfile {
  const known = facts.profiles.find((candidate) => candidate.name === name);
  const parts = known ?? partsOf(name);
  const model = facts.models[parts?.model ?? ''];
  const device = facts.accelerators[parts?.accelerator ?? ''];
  if (parts === undefined || model === undefined || device === undefined) {
    throw new UnknownTimingProfile(`There is no timing profile ${name}. Known: ${timingProfileNames.join(', ')}; or any <N>x<${Object.keys(facts.accelerators).join('|')}>-<${Object.keys(facts.models).join('|')}>[-fp8].`);
  }
  const layout = { tensorParallel: parts.tensorParallel, weightBytes: parts.weightBytes, kvBytes: KV_BYTES };
  const kvTokens = kvTokensThatFit(model, device, layout);
  if (kvTokens === 0) throw new UnknownTimingProfile(`${name} does not fit: the weights leave no memory for a cache. Take more accelerators or fewer bytes per weight.`);
  const step = known?.step ?? datasheetStepTime(model, device, layout);
  return { name, tensorParallel: parts.tensorParallel, step, kvTokens, status: known?.status ?? 'datasheet', source: known?.source ?? 'datasheets' };
}

interface NameParts {
  readonly tensorParallel: number;
  readonly accelerator: string;
  readonly model: string;
  readonly weightBytes: number;
}

function partsOf(name: string): NameParts | undefined {
  const match = /^(?:([1248])x)?([a-z0-9]+)-(.+?)(-fp8)?$/.exec(name);
  if (match === null) return undefined;
  return { tensorParallel: Number(match[1] ?? 1), accelerator: match[2] ?? '', model: match[3] ?? '', weightBytes: match[4] === undefined ? 2 : 1 };
}
