import { randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RANDOM_WEIGHTS_KEY } from '../headers/gguf-header.js';
import { GgufWriter } from './gguf-writer.js';

const EMBEDDING = 64;
const LAYERS = 2;
const HEADS = 4;
const FEED_FORWARD = 128;
export const RANDOM_MODEL_CONTEXT_TOKENS = 4_096;
/** Spread of the weights: wide enough that the answers vary. */
const WEIGHT_SCALE = 0.35;
const SEED = 20_240_229;

const CHAT_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:";

/** Token types as GGUF numbers them. */
const TokenType = { Normal: 1, Unknown: 2, Control: 3, Byte: 6 } as const;

/**
 * Writes a small, valid llama model with random weights: half a megabyte, the same bytes every time. An engine loads it and generates noise.
 * Its metadata says so, and everything that lists it must, too.
 */
export async function writeRandomModel(path: string): Promise<void> {
  const writer = new GgufWriter();
  writeMetadata(writer);
  const random = gaussian(SEED);
  const weights = (count: number): Float32Array => Float32Array.from({ length: count }, () => random() * WEIGHT_SCALE);
  const ones = (count: number): Float32Array => new Float32Array(count).fill(1);
  const vocabulary = VOCABULARY.length;
  writer.tensor('token_embd.weight', [EMBEDDING, vocabulary], weights(EMBEDDING * vocabulary));
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const block = `blk.${layer}`;
    writer.tensor(`${block}.attn_norm.weight`, [EMBEDDING], ones(EMBEDDING));
    for (const part of ['attn_q', 'attn_k', 'attn_v', 'attn_output']) writer.tensor(`${block}.${part}.weight`, [EMBEDDING, EMBEDDING], weights(EMBEDDING * EMBEDDING));
    writer.tensor(`${block}.ffn_norm.weight`, [EMBEDDING], ones(EMBEDDING));
    for (const part of ['ffn_gate', 'ffn_up']) writer.tensor(`${block}.${part}.weight`, [EMBEDDING, FEED_FORWARD], weights(EMBEDDING * FEED_FORWARD));
    writer.tensor(`${block}.ffn_down.weight`, [FEED_FORWARD, EMBEDDING], weights(EMBEDDING * FEED_FORWARD));
  }
  writer.tensor('output_norm.weight', [EMBEDDING], ones(EMBEDDING));
  writer.tensor('output.weight', [EMBEDDING, vocabulary], weights(EMBEDDING * vocabulary));
  await mkdir(dirname(path), { recursive: true });
  const fresh = `${path}.${randomUUID()}`;
  await writeFile(fresh, writer.bytes());
  await rename(fresh, path);
}

interface VocabularyEntry {
  readonly text: string;
  readonly type: (typeof TokenType)[keyof typeof TokenType];
}

/** Bytes cover every text; a few letters and words make answers readable as words of a language nobody speaks. */
const VOCABULARY: readonly VocabularyEntry[] = [
  { text: '<unk>', type: TokenType.Unknown },
  { text: '<s>', type: TokenType.Control },
  { text: '</s>', type: TokenType.Control },
  ...Array.from({ length: 256 }, (_, byte) => ({ text: `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`, type: TokenType.Byte })),
  ...['▁', ...'abcdefghijklmnopqrstuvwxyz', ...'.,?!:'].map((text) => ({ text, type: TokenType.Normal })),
];

function writeMetadata(writer: GgufWriter): void {
  writer.text('general.architecture', 'llama');
  writer.text('general.name', 'penstock-random');
  writer.text('general.license', 'cc0-1.0');
  writer.flag(RANDOM_WEIGHTS_KEY, true);
  writer.uint32('llama.context_length', RANDOM_MODEL_CONTEXT_TOKENS);
  writer.uint32('llama.embedding_length', EMBEDDING);
  writer.uint32('llama.block_count', LAYERS);
  writer.uint32('llama.feed_forward_length', FEED_FORWARD);
  writer.uint32('llama.attention.head_count', HEADS);
  writer.uint32('llama.attention.head_count_kv', HEADS);
  writer.uint32('llama.rope.dimension_count', EMBEDDING / HEADS);
  writer.float32('llama.attention.layer_norm_rms_epsilon', 0.000_01);
  writer.text('tokenizer.ggml.model', 'llama');
  writer.texts('tokenizer.ggml.tokens', VOCABULARY.map((entry) => entry.text));
  writer.float32s('tokenizer.ggml.scores', VOCABULARY.map((_, index) => -index));
  writer.int32s('tokenizer.ggml.token_type', VOCABULARY.map((entry) => entry.type));
  writer.uint32('tokenizer.ggml.bos_token_id', 1);
  writer.uint32('tokenizer.ggml.eos_token_id', 2);
  writer.uint32('tokenizer.ggml.unknown_token_id', 0);
  writer.text('tokenizer.chat_template', CHAT_TEMPLATE);
}

/** Normally distributed numbers from a small deterministic generator (mulberry32 and Box-Muller). */
function gaussian(seed: number): () => number {
  let state = seed >>> 0;
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 4_294_967_296;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}
