/** The only source of fresh identifiers; 128 random bits or more behind each one. */
export interface IdSource {
  /** A new id such as `ep_8c4a…`: the prefix, an underscore, then 32 lower-case hexadecimal digits. */
  next(prefix: IdPrefix): string;
}

/** Which kind of thing an id names. The prefix makes an id readable in logs and subjects. */
export type IdPrefix =
  | 'org' | 'proj' | 'key' | 'sa' | 'async' | 'mv' | 'ep' | 'node' | 'acc' | 'rep' | 'req' | 'lease' | 'cmd' | 'evt' | 'file' | 'upload' | 'part' | 'batch' | 'inst' | 'res';

/** Ids become parts of NATS subjects, so they hold no dot, space or wildcard. */
const ID_PATTERN = /^[A-Za-z0-9_-]{1,128}$/;

/** True when `text` may stand as one token of an event subject. */
export function isId(text: string): boolean {
  return ID_PATTERN.test(text);
}
