import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { EngineStartError } from '@penstock/domain-serving';

/** The ONNX file of a pulled artifact, which is that file or a folder with its weights beside it. Throws {@link EngineStartError}. */
export async function onnxFileOf(modelPath: string | null): Promise<string> {
  if (modelPath === null) throw new EngineStartError('engine_exited', 'There is no ONNX file to load. Deploy the endpoint with an .onnx file as its artifact.');
  const found = await stat(modelPath).catch(() => undefined);
  if (found?.isDirectory() !== true) return modelPath;
  const files = (await readdir(modelPath)).filter((name) => name.endsWith('.onnx'));
  const [only] = files;
  if (only === undefined || files.length > 1) throw new EngineStartError('engine_exited', `The artifact holds ${files.length} ONNX files instead of one. Name the file in the artifact's address.`);
  return join(modelPath, only);
}
