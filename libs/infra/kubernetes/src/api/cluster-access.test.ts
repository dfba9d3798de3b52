import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { loadClusterAccess } from './cluster-access.js';
import { jsonLines } from './json-lines.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-kubeconfig-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function access(user: string, now: () => number = () => 0) {
  const path = join(folder, 'config');
  await writeFile(join(folder, 'ca.crt'), 'AUTHORITY');
  await writeFile(path, `
current-context: one
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443/", certificate-authority: ca.crt}}]
users: [{name: u, user: ${user}}]
contexts: [{name: one, context: {cluster: c, user: u}}]
`);
  return loadClusterAccess({ kubeconfig: path, environment: {}, now });
}

describe('access to a cluster', () => {
  test('a kubeconfig with a token; files are found beside it', async () => {
    const found = await access('{token: secret}');
    expect([found.server, found.ca, await found.token()]).toEqual(['https://127.0.0.1:6443', 'AUTHORITY', 'secret']);
  });

  test('a token file is read again, since mounted tokens are renewed', async () => {
    const clock = { ms: 0 };
    await writeFile(join(folder, 'token'), 'first\n');
    const found = await access('{tokenFile: token}', () => clock.ms);
    expect(await found.token()).toBe('first');
    await writeFile(join(folder, 'token'), 'second\n');
    expect(await found.token()).toBe('first');
    clock.ms = 61_000;
    expect(await found.token()).toBe('second');
  });

  test('a client certificate', async () => {
    const base64 = (text: string): string => Buffer.from(text).toString('base64');
    const found = await access(`{client-certificate-data: ${base64('CERT')}, client-key-data: ${base64('KEY')}}`);
    expect(found.certificate).toEqual({ cert: 'CERT', key: 'KEY' });
  });

  test('credentials from a program, and no cluster at all, are refused with a next step', async () => {
    await expect(access('{exec: {command: aws}}')).rejects.toThrow(/service account token or a client certificate/);
    await expect(loadClusterAccess({ environment: {} })).rejects.toThrow(/KUBECONFIG/);
  });
});

test('property: lines of JSON come out whole however the stream is cut', async () => {
  await fc.assert(fc.asyncProperty(fc.array(fc.record({ text: fc.string() }), { maxLength: 20 }), fc.infiniteStream(fc.integer({ min: 1, max: 40 })), async (values, cuts) => {
    const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (let start = 0; start < bytes.length; ) {
        const length = cuts.next().value;
        yield bytes.subarray(start, start + length);
        start += length;
      }
    }
    const read: unknown[] = [];
    for await (const value of jsonLines(chunks())) read.push(value);
    expect(read).toEqual(values);
  }));
});
