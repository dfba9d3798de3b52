import type { ModelVersionRegisteredV1 } from '@penstock/contract-events';
import { MODEL_FACTS, type ModelFacts } from './model-facts.js';

/** What is known of a registered model version for an estimate, or what is missing for one. */
export type RegisteredFacts =
  | { readonly kind: 'known'; readonly facts: ModelFacts; readonly precision: string }
  | { readonly kind: 'unknown'; readonly missing: readonly string[] };

/** Bytes for each parameter; 4-bit weights carry scales, which the sizes of published files put at a tenth more. */
const BYTES_PER_PARAMETER: Readonly<Record<string, number>> = { fp32: 4, bf16: 2, fp16: 2, fp8: 1, int8: 1, int4: 0.55 };

const PRECISION_NAMES: Readonly<Record<string, string>> = { f32: 'fp32', float32: 'fp32', f16: 'fp16', float16: 'fp16', bfloat16: 'bf16', f8_e4m3: 'fp8', fp8_e4m3: 'fp8', i8: 'int8' };

/** A dense layer has about twelve times the square of its width in parameters. */
const PARAMETERS_PER_LAYER_AND_WIDTH2 = 12;

/** The name that profiles have for what a header says, such as `bf16` for `BF16`; names of GGUF stay, in small letters. */
export function precisionNamed(precision: string): string {
  const name = precision.toLowerCase();
  return PRECISION_NAMES[name] ?? name;
}

/** Facts of a well-known model by the name of its repository, whole or without its owner; undefined for any other. */
export function knownModel(name: string): ModelFacts | undefined {
  const wanted = name.toLowerCase();
  return MODEL_FACTS.find(({ id }) => id.toLowerCase() === wanted || id.toLowerCase().split('/').at(-1) === wanted);
}

/**
 * Facts out of what was read from the files. Where a header says less than a plan needs, the catalogue of well-known models
 * fills in by repository or name; what then is still missing is named.
 */
export function factsOf(modelName: string, registered: ModelVersionRegisteredV1): RegisteredFacts {
  const { source, memory, parameters, layers } = registered;
  const known = (source.kind === 'hugging-face' ? knownModel(source.repository) : undefined) ?? knownModel(modelName);
  const precision = registered.precision === null ? undefined : precisionNamed(registered.precision);
  if (known !== undefined) {
    const own = memory.weightBytes > 0 && precision !== undefined ? { [precision]: memory.weightBytes } : {};
    return { kind: 'known', facts: { ...known, weightBytes: { ...known.weightBytes, ...own } }, precision: precision ?? Object.keys(known.weightBytes)[0] ?? 'bf16' };
  }
  const missing = [
    ...(memory.weightBytes > 0 ? [] : ['weightBytes']),
    ...(precision === undefined ? ['precision'] : []),
    ...(parameters === null || parameters === 0 ? ['parameters'] : []),
    ...(layers === null || layers === 0 ? ['layers'] : []),
    // Only what generates has a cache of keys and values.
    ...(memory.basis === 'header' || kindOf(registered) !== 'llm' ? [] : ['kvBytesPerToken']),
  ];
  if (missing.length > 0 || parameters === null || layers === null || precision === undefined) return { kind: 'unknown', missing };
  const others = Object.fromEntries(Object.entries(BYTES_PER_PARAMETER).map(([name, bytes]) => [name, bytes * parameters]));
  return {
    kind: 'known', precision,
    facts: {
      id: modelName, kind: kindOf(registered), params: parameters, activeParams: parameters, layers, hidden: Math.round(Math.sqrt(parameters / (PARAMETERS_PER_LAYER_AND_WIDTH2 * layers))),
      // Not in the header as it is kept: one head is the careful guess, since more would share the cache among more GPUs.
      kvHeads: 1, vocabulary: 0, maxContext: registered.contextTokensMax, kvBytesPerToken: kindOf(registered) === 'llm' ? memory.kvBytesPerToken : 0, weightBytes: { ...others, [precision]: memory.weightBytes }, status: 'header',
    },
  };
}

function kindOf({ capabilities }: ModelVersionRegisteredV1): string {
  if (capabilities.includes('chat') || capabilities.includes('completions')) return 'llm';
  return capabilities.includes('embeddings') ? 'embedding' : 'tensor';
}
