import { readFile } from 'node:fs/promises';
import { createdKeyBody, keyList } from '@penstock/contract-http';
import type { Standalone } from '@penstock/infra-composition';
import { ApiClient } from './api-client.js';
import { cliFile } from './find-target.js';

const KEY_NAME = 'first key';

/** The inference key that `up` prints: the one of the last start while it still works, else a new one. */
export async function firstKey(platform: Standalone): Promise<string> {
  const client = new ApiClient({ url: platform.url, adminKey: platform.adminKey });
  const stored = await readFile(platform.instance.path('cli.json'), 'utf8').then((text) => cliFile.parse(JSON.parse(text)).apiKey, () => undefined);
  if (stored !== undefined) {
    const { data } = await client.call('GET', '/admin/v1/keys', keyList);
    if (data.some((key) => key.name === KEY_NAME && key.revoked_at === null && stored.endsWith(key.redacted.slice(-4)))) return stored;
  }
  const created = await client.call('POST', '/admin/v1/keys', createdKeyBody, { name: KEY_NAME });
  return created.key;
}
