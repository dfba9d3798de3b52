import { basename } from 'node:path/posix';
import type { ArtifactSource } from '@penstock/contract-events';
import type { RemoteFile } from '../download/remote-file.js';

const LOOPBACK_HOSTS = new Set(['127.0.0.1', 'localhost', '[::1]']);

/** The files of a list of URLs. Plain `http` is taken from this machine only, or when the digest is pinned. */
export function httpsFiles(source: Extract<ArtifactSource, { kind: 'https' }>, isPinned: boolean): readonly RemoteFile[] {
  return source.urls.map((text) => {
    const url = new URL(text);
    const isPlain = url.protocol === 'http:';
    if (!isPlain && url.protocol !== 'https:') throw new Error(`${url.protocol} is not supported; use https`);
    if (isPlain && !isPinned && !LOOPBACK_HOSTS.has(url.hostname)) throw new Error('plain http is refused without a pinned digest: use https, or give the digest');
    if (url.username !== '' || url.password !== '') throw new Error('credentials in the URL are refused');
    return { path: decodeURIComponent(basename(url.pathname)) || 'model', url: url.href, headers: {}, identity: `url:${url.origin}${url.pathname}${url.search}` };
  });
}
