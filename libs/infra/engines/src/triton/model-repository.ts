import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What Triton calls the model, and the folder it lies in; the public name may hold characters that no folder can. */
export const SERVED_MODEL = 'model';
export const SERVED_VERSION = '1';

export interface RepositoryOptions {
  /** Is emptied first. */
  readonly folder: string;
  readonly onnxFile: string;
  readonly threads: number;
  /** Copies of the model that work at the same time. */
  readonly instances: number;
  /** Rows that Triton puts together at most; 0 leaves every request alone. */
  readonly batchMax: number;
  /** How long a request may wait for others to be put together with. */
  readonly batchDelayMicroseconds: number;
  readonly queueMax: number;
}

/** Writes a model repository with the one model; its inputs and outputs are completed by the model's own code from the ONNX file. */
export async function writeModelRepository(options: RepositoryOptions): Promise<void> {
  const { folder } = options;
  await rm(folder, { recursive: true, force: true });
  const versionFolder = join(folder, SERVED_MODEL, SERVED_VERSION);
  await mkdir(versionFolder, { recursive: true });
  await copyFile(fileURLToPath(new URL('./onnx_model.py', import.meta.url)), join(versionFolder, 'model.py'));
  await writeFile(join(folder, SERVED_MODEL, 'config.pbtxt'), configText(options));
}

/** The configuration in the text form of protocol buffers. */
export function configText({ onnxFile, threads, instances, batchMax, batchDelayMicroseconds, queueMax }: RepositoryOptions): string {
  const parameter = (key: string, value: string): string => `parameters { key: ${quoted(key)} value { string_value: ${quoted(value)} } }`;
  const queue = `default_queue_policy { max_queue_size: ${queueMax} }`;
  return [
    `name: ${quoted(SERVED_MODEL)}`,
    'backend: "python"',
    `max_batch_size: ${batchMax}`,
    `instance_group [{ kind: KIND_CPU count: ${instances} }]`,
    ...(batchMax > 0 ? [`dynamic_batching { max_queue_delay_microseconds: ${batchDelayMicroseconds} ${queue} }`] : []),
    parameter('onnx', onnxFile),
    parameter('threads', String(threads)),
    parameter('batch', String(batchMax)),
    '',
  ].join('\n');
}

/** Bytes outside of printable ASCII as octal escapes, which the text form has. */
function quoted(value: string): string {
  const escaped = [...Buffer.from(value)].map((byte) => (byte === 0x22 || byte === 0x5c || byte < 0x20 || byte > 0x7e ? `\\${byte.toString(8).padStart(3, '0')}` : String.fromCharCode(byte)));
  return `"${escaped.join('')}"`;
}
