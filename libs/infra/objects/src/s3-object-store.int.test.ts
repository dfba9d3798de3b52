import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ensureRuntime, findFreePort, startSeaweedfs, type RunningServer } from '@penstock/infra-runtimes';
import { objectStoreSuite } from '@penstock/testing-kit/suites';
import { S3ObjectStore, type S3Settings } from './s3-object-store.js';

let folder: string;
let server: RunningServer;
let settings: S3Settings;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-s3-'));
  const { path } = await ensureRuntime('seaweedfs');
  const credentials = { accessKeyId: 'penstock', secretAccessKey: 'a-secret-of-this-test' };
  server = await startSeaweedfs({ path, dataDir: folder, logFile: join(folder, 'weed.log'), port: await findFreePort(), ...credentials });
  settings = { endpoint: server.url, region: 'us-east-1', bucket: 'objects', forcePathStyle: true, ...credentials };
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

objectStoreSuite('S3ObjectStore on SeaweedFS', async () => {
  const store = await S3ObjectStore.open(settings);
  return { store, close: async () => store.close() };
});

describe('S3ObjectStore', () => {
  test('refuses a wrong secret with the reason, and never repeats it', async () => {
    const attempt = S3ObjectStore.open({ ...settings, secretAccessKey: 'not-the-secret' });
    await expect(attempt).rejects.toMatchObject({ name: 'ObjectStoreUnavailableError' });
    await expect(attempt).rejects.not.toThrow(/not-the-secret/);
  });

  test('says that nobody is there', async () => {
    const attempt = S3ObjectStore.open({ ...settings, endpoint: `http://127.0.0.1:${await findFreePort()}` });
    await expect(attempt).rejects.toThrow(/The object store is not available: .*ECONNREFUSED/);
  });
});
