import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startStandalone, type Standalone } from '@penstock/infra-composition';

/** Other users must be able to walk through a folder of root's, since PostgreSQL runs as one of them. */
const WALKABLE = 0o711;

/** Runs `work` with a whole platform in a folder of its own, and cleans up. */
export async function withPlatform<Value>(say: (text: string) => void, work: (platform: Standalone, folder: string) => Promise<Value>): Promise<Value> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-conformance-'));
  await chmod(folder, WALKABLE);
  try {
    const platform = await startStandalone({ dataDir: join(folder, 'data'), port: 0, onStep: (name, ms) => say(`${name}: ${Math.round(ms)} ms`) });
    try {
      return await work(platform, folder);
    } finally {
      await platform.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
