import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { GgufWriter } from './gguf-writer.js';
import { SafetensorsFile } from './safetensors-file.js';

const LAYERS = 6;
/** Token types as GGUF numbers them. */
const TokenType = { Normal: 1, Control: 3 } as const;
const SPECIAL_TOKENS: ReadonlySet<string> = new Set(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']);
const POOLING_MEAN = 1;
const FILE_TYPE_MOSTLY_F16 = 1;

/** Names of one layer's parts there and here. */
const LAYER_PARTS = [
  ['attention.self.query', 'attn_q'], ['attention.self.key', 'attn_k'], ['attention.self.value', 'attn_v'], ['attention.output.dense', 'attn_output'], ['attention.output.LayerNorm', 'attn_output_norm'],
  ['intermediate.dense', 'ffn_up'], ['output.dense', 'ffn_down'], ['output.LayerNorm', 'layer_output_norm'],
] as const;

/**
 * Writes all-MiniLM-L6-v2 as GGUF for llama.cpp: matrices in 16 bits, the rest in 32, mean pooling. The same bytes every time.
 * Throws `InvalidModelFileError` when the weights are not of that model.
 */
export async function convertEmbeddingModel(weightsPath: string, vocabularyPath: string, path: string): Promise<void> {
  const writer = new GgufWriter();
  writeMetadata(writer, (await readFile(vocabularyPath, 'utf8')).split('\n').slice(0, -1));
  const weights = await SafetensorsFile.open(weightsPath);
  try {
    await writeTensors(writer, weights);
  } finally {
    await weights.close();
  }
  await mkdir(dirname(path), { recursive: true });
  const fresh = `${path}.${randomUUID()}`;
  try {
    await writeFile(fresh, writer.bytes());
    await rename(fresh, path);
  } finally {
    await rm(fresh, { force: true });
  }
}

function writeMetadata(writer: GgufWriter, vocabulary: readonly string[]): void {
  writer.text('general.architecture', 'bert');
  writer.text('general.name', 'all-MiniLM-L6-v2');
  writer.uint32('general.file_type', FILE_TYPE_MOSTLY_F16);
  writer.uint32('bert.context_length', 512);
  writer.uint32('bert.embedding_length', 384);
  writer.uint32('bert.feed_forward_length', 1_536);
  writer.uint32('bert.block_count', LAYERS);
  writer.uint32('bert.attention.head_count', 12);
  writer.float32('bert.attention.layer_norm_epsilon', 1e-12);
  writer.flag('bert.attention.causal', false);
  writer.uint32('bert.pooling_type', POOLING_MEAN);
  writer.text('tokenizer.ggml.model', 'bert');
  writer.text('tokenizer.ggml.pre', 'default');
  writer.texts('tokenizer.ggml.tokens', vocabulary.map(tokenText));
  writer.int32s('tokenizer.ggml.token_type', vocabulary.map((token) => (SPECIAL_TOKENS.has(token) ? TokenType.Control : TokenType.Normal)));
  writer.uint32('tokenizer.ggml.token_type_count', 2);
  // The engine's own key is misspelt.
  const ids = { bos: 101, eos: 102, unknown: 100, seperator: 102, padding: 0, cls: 101, mask: 103 };
  for (const [name, id] of Object.entries(ids)) writer.uint32(`tokenizer.ggml.${name}_token_id`, id);
  writer.flag('tokenizer.ggml.add_bos_token', true);
  writer.flag('tokenizer.ggml.add_sep_token', true);
  writer.flag('tokenizer.ggml.normalizer.lowercase', true);
  writer.flag('tokenizer.ggml.normalizer.strip_accents', true);
}

/** A piece that goes on with a word loses its mark; one that begins a word gets one. */
function tokenText(token: string): string {
  if (SPECIAL_TOKENS.has(token)) return token;
  return token.startsWith('##') && token.length > 2 ? token.slice(2) : `▁${token}`;
}

async function writeTensors(writer: GgufWriter, weights: SafetensorsFile): Promise<void> {
  const copy = async (from: string, to: string, isHalf: boolean): Promise<void> => {
    const { shape, values } = await weights.read(from);
    const dimensions = [...shape].reverse();
    if (isHalf) writer.halfTensor(to, dimensions, values);
    else writer.tensor(to, dimensions, values);
  };
  await copy('embeddings.word_embeddings.weight', 'token_embd.weight', true);
  await copy('embeddings.position_embeddings.weight', 'position_embd.weight', false);
  await copy('embeddings.token_type_embeddings.weight', 'token_types.weight', false);
  for (const part of ['weight', 'bias']) await copy(`embeddings.LayerNorm.${part}`, `token_embd_norm.${part}`, false);
  for (let layer = 0; layer < LAYERS; layer += 1) {
    for (const [from, to] of LAYER_PARTS) {
      for (const part of ['weight', 'bias']) await copy(`encoder.layer.${layer}.${from}.${part}`, `blk.${layer}.${to}.${part}`, part === 'weight' && !to.endsWith('norm'));
    }
  }
}
