/** A fresh API key. `key` is shown once and kept nowhere. */
export interface MintedKey {
  readonly key: string;
  /** HMAC-SHA-256 under the installation's pepper, hexadecimal. */
  readonly hmac: string;
  readonly prefix: string;
  readonly lastFour: string;
}

/** Makes API keys and recognises them. */
export interface KeyMinter {
  /** `sk-ps-` and 43 base64url characters: 256 random bits. */
  mint(): MintedKey;
  /** The hexadecimal HMAC that a presented key is looked up by. */
  hmac(presented: string): string;
  /** Whether both are the same secret, in time that does not depend on where they differ. */
  isSame(presented: string, secret: string): boolean;
  /** What keeps an organisation's prompts apart in the caches of engines: always the same, and nobody outside can tell it. */
  cacheSalt(organisationId: string): string;
}

/** How an API key starts, so that people and secret scanners recognise one. */
export const KEY_PREFIX = 'sk-ps-';

/** Safe to show: the first and the last characters of a presented key. */
export function redactKey(presented: string): string {
  return presented.length <= 16 ? '***' : `${presented.slice(0, 10)}…${presented.slice(-4)}`;
}
