import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { defaultCacheDir } from '@penstock/infra-runtimes';
import { CacheArtifactInspector } from './cache-artifact-inspector.js';
import { NodeArtifactCache } from './cache/node-artifact-cache.js';
import { defaultModel } from './models/default-model.js';
import { writeRandomModel } from './models/random-model.js';

/** The first run on a machine downloads the model. */
const DOWNLOAD_TIMEOUT_MS = 600_000;

let folder: string;
let inspector: CacheArtifactInspector;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-inspector-'));
  inspector = new CacheArtifactInspector(new NodeArtifactCache({ dir: join(folder, 'cache') }));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

describe('inspecting', () => {
  test('the default model, from whichever of its sources is in reach', async () => {
    const shared = new CacheArtifactInspector(new NodeArtifactCache({ dir: join(defaultCacheDir(), 'models') }));
    const [source, ...fallbacks] = defaultModel.sources;
    const inspected = await shared.inspect(source, fallbacks, defaultModel.digest);
    expect(inspected.artifacts).toEqual([{ path: 'SmolLM2-135M-Instruct.Q4_1.gguf', bytes: defaultModel.bytes, digest: defaultModel.digest }]);
    expect(inspected.header).toEqual({
      format: 'gguf', architecture: 'llama', layers: 30, parameters: 134_515_008, precision: 'Q4_1', contextTokensMax: 8_192, kvBytesPerToken: 23_040,
      weightBytes: 96_576_768, license: 'apache-2.0', randomWeights: false,
    });
  }, DOWNLOAD_TIMEOUT_MS);

  test('random weights say what they are', async () => {
    const path = join(folder, 'random.gguf');
    await writeRandomModel(path);
    const inspected = await inspector.inspect({ kind: 'directory', path }, [], null);
    expect(inspected.header.randomWeights).toBe(true);
    expect(inspected.artifacts[0]?.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  test('engines that pull nothing have nothing to read', async () => {
    expect(await inspector.inspect({ kind: 'attached', url: 'http://127.0.0.1:1' }, [], null)).toMatchObject({ artifacts: [], header: { format: 'none' } });
  });

  test.each([
    ['a damaged GGUF file', 'model.gguf', 'GGUF nonsense', 'invalid_file'],
    ['an unknown format', 'model.txt', 'hello', 'invalid_file'],
  ])('%s is refused by name', async (_name, file, content, code) => {
    const path = join(folder, file);
    await writeFile(path, content);
    await expect(inspector.inspect({ kind: 'directory', path }, [], null)).rejects.toMatchObject({ code, message: expect.stringContaining(file) as unknown as string });
  });

  test('a wrong pinned digest and a source that is not there', async () => {
    const path = join(folder, 'random.gguf');
    await writeRandomModel(path);
    await expect(inspector.inspect({ kind: 'directory', path }, [], `sha256:${'0'.repeat(64)}`)).rejects.toMatchObject({ code: 'digest_mismatch' });
    await expect(inspector.inspect({ kind: 'directory', path: join(folder, 'nothing.gguf') }, [], null)).rejects.toMatchObject({ code: 'pull_failed', message: expect.stringContaining('does not exist') as unknown as string });
  });
});
