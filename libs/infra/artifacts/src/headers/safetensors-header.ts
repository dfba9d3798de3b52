import { open, readFile, stat } from 'node:fs/promises';
import type { ArtifactHeader } from '@penstock/domain-catalog';
import { z } from 'zod';
import { InvalidModelFileError } from './file-window.js';

const LENGTH_BYTES = 8;
/** The format itself allows no more. */
const HEADER_BYTES_MAX = 100_000_000;
const CONFIG_BYTES_MAX = 1_048_576;
const CACHE_VALUE_BYTES = 2;

const tensorInfo = z.object({ dtype: z.string().max(20), shape: z.array(z.int().nonnegative()).max(16), data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]) });

/** The parts of a Hugging Face `config.json` that say how large the key-value cache is. */
const modelConfig = z.looseObject({
  model_type: z.string().max(100).optional(),
  num_hidden_layers: z.int().positive().optional(),
  hidden_size: z.int().positive().optional(),
  num_attention_heads: z.int().positive().optional(),
  num_key_value_heads: z.int().positive().optional(),
  head_dim: z.int().positive().nullish(),
  max_position_embeddings: z.int().positive().optional(),
});

/** Reads the headers of all weight files of one model, and its `config.json` when it has one. Throws `InvalidModelFileError`. */
export async function readSafetensorsHeader(weightPaths: readonly string[], configPath: string | undefined): Promise<ArtifactHeader> {
  let parameters = 0;
  let weightBytes = 0;
  const elementsOfType = new Map<string, number>();
  for (const path of weightPaths) {
    for (const tensor of await readTensors(path)) {
      const elements = tensor.shape.reduce((product, length) => product * length, 1);
      parameters += elements;
      weightBytes += tensor.data_offsets[1] - tensor.data_offsets[0];
      elementsOfType.set(tensor.dtype, (elementsOfType.get(tensor.dtype) ?? 0) + elements);
    }
  }
  const config = configPath === undefined ? {} : await readConfig(configPath);
  const heads = config.num_attention_heads;
  const headLength = config.head_dim ?? (config.hidden_size !== undefined && heads !== undefined ? config.hidden_size / heads : undefined);
  const kvHeads = config.num_key_value_heads ?? heads;
  const layers = config.num_hidden_layers;
  return {
    format: 'safetensors', architecture: config.model_type ?? null, parameters, layers: layers ?? null, weightBytes,
    precision: [...elementsOfType].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null,
    contextTokensMax: config.max_position_embeddings ?? null,
    kvBytesPerToken: layers === undefined || kvHeads === undefined || headLength === undefined ? null : layers * kvHeads * headLength * 2 * CACHE_VALUE_BYTES,
    license: null, randomWeights: false,
  };
}

async function readTensors(path: string): Promise<readonly z.infer<typeof tensorInfo>[]> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    if (size < LENGTH_BYTES) throw new InvalidModelFileError('it is too short for a safetensors file');
    const length = Number((await file.read(Buffer.alloc(LENGTH_BYTES), 0, LENGTH_BYTES, 0)).buffer.readBigUInt64LE());
    if (length > HEADER_BYTES_MAX || LENGTH_BYTES + length > size) throw new InvalidModelFileError(`it is not a safetensors file, or it is cut short: it claims a header of ${length} bytes`);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, LENGTH_BYTES);
    const tensors = parseHeader(buffer.toString('utf8'));
    const dataEnd = Math.max(0, ...tensors.map((tensor) => tensor.data_offsets[1]));
    if (LENGTH_BYTES + length + dataEnd > size) throw new InvalidModelFileError('the file is cut short: some of its tensors lie beyond its end');
    return tensors;
  } finally {
    await file.close();
  }
}

function parseHeader(text: string): readonly z.infer<typeof tensorInfo>[] {
  try {
    const header = z.record(z.string(), z.unknown()).parse(JSON.parse(text));
    return Object.entries(header).filter(([name]) => name !== '__metadata__').map(([, tensor]) => tensorInfo.parse(tensor));
  } catch (error) {
    throw new InvalidModelFileError('its safetensors header is not what the format says', { cause: error });
  }
}

async function readConfig(path: string): Promise<z.infer<typeof modelConfig>> {
  if ((await stat(path)).size > CONFIG_BYTES_MAX) throw new InvalidModelFileError('its config.json is too large');
  try {
    return modelConfig.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    throw new InvalidModelFileError('its config.json is not what transformers writes', { cause: error });
  }
}
