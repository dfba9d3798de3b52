import type { ArtifactSource } from '@penstock/contract-events';

/** How a source is called in messages. */
export function describeSource(source: ArtifactSource): string {
  switch (source.kind) {
    case 'directory': return source.path;
    case 'https': return source.urls[0] ?? 'an empty list of URLs';
    case 'hugging-face': return `Hugging Face ${source.repository}@${source.revision}`;
    case 'package': return `PyPI ${source.name} ${source.version}`;
    case 'attached': return `the engine at ${source.url}`;
    case 'none': return 'no source';
  }
}

/** Why a source gave nothing, in words that do not need a stack trace. */
export function describeFailure(error: unknown): string {
  const cause = error instanceof Error ? error : new Error(String(error));
  const code = (cause as NodeJS.ErrnoException).code ?? '';
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|UND_ERR_CONNECT_TIMEOUT/.test(`${code} ${cause.message}`)) return `not in reach (${cause.message || code})`;
  if (/Name or service not known|Temporary failure in name resolution|No matching distribution|NewConnectionError|Max retries/i.test(cause.message)) return `no registry in reach, or it does not have it (${cause.message})`;
  return cause.message || code;
}
