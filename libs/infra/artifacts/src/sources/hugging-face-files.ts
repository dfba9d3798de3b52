import type { ArtifactSource } from '@penstock/contract-events';
import { z } from 'zod';
import { httpGet } from '../download/http-get.js';
import type { RemoteFile } from '../download/remote-file.js';
import { chooseModelFiles } from './choose-model-files.js';

type HuggingFaceSource = Extract<ArtifactSource, { kind: 'hugging-face' }>;

export interface HubAccess {
  /** Such as `https://huggingface.co`. */
  readonly endpoint: string;
  /** Sent to the endpoint's host and nowhere else. */
  readonly token: string | undefined;
}

const LISTING_BYTES_MAX = 16 * 1_048_576;
const repositoryInfo = z.looseObject({ siblings: z.array(z.looseObject({ rfilename: z.string() })).max(100_000) });

/** The files of a hub repository; when the source names none, those that make up the model. */
export async function huggingFaceFiles(source: HuggingFaceSource, hub: HubAccess, signal: AbortSignal): Promise<readonly RemoteFile[]> {
  const endpoint = hub.endpoint.replace(/\/+$/, '');
  const headers: Record<string, string> = hub.token === undefined ? {} : { authorization: `Bearer ${hub.token}` };
  const repository = encodePath(source.repository);
  const revision = encodeURIComponent(source.revision);
  const names = source.files.length > 0 ? source.files : chooseModelFiles(await listFiles(`${endpoint}/api/models/${repository}/revision/${revision}`, headers, signal));
  return names.map((path) => ({
    path, headers,
    url: `${endpoint}/${repository}/resolve/${revision}/${encodePath(path)}`,
    identity: `hf:${endpoint}:${source.repository}@${source.revision}:${path}`,
  }));
}

async function listFiles(url: string, headers: Record<string, string>, signal: AbortSignal): Promise<readonly string[]> {
  const { body } = await httpGet({ path: 'listing', url, headers, identity: url }, 0, undefined, signal);
  let text = '';
  for await (const chunk of body) {
    text += (chunk as Buffer).toString('utf8');
    if (text.length > LISTING_BYTES_MAX) throw new Error('the list of files of the repository is too long');
  }
  return repositoryInfo.parse(JSON.parse(text)).siblings.map((sibling) => sibling.rfilename);
}

function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}
