import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { KEY_PREFIX, type KeyMinter, type MintedKey } from '@penstock/domain-access';

const KEY_BYTES = 32;
const SHOWN_PREFIX_LENGTH = KEY_PREFIX.length + 4;
/** A shorter pepper could be guessed from one leaked HMAC. */
const PEPPER_LENGTH_MIN = 16;

const SALT_BYTES = 32;
/** Salts are derived anew beyond this many. */
const SALTS_KEPT_MAX = 100_000;

/** Keys under an installation's pepper: without it a stolen list of HMACs cannot be turned into keys, nor used as keys. */
export class HmacKeyMinter implements KeyMinter {
  private readonly saltKey: string;
  private readonly salts = new Map<string, string>();

  /** `saltKey` is what cache salts are derived from; without one, the pepper is. */
  constructor(private readonly pepper: string, saltKey?: string) {
    this.saltKey = saltKey ?? pepper;
    if (this.saltKey.length < PEPPER_LENGTH_MIN) throw new RangeError(`The key of cache salts must have at least ${PEPPER_LENGTH_MIN} characters.`);
    if (pepper.length < PEPPER_LENGTH_MIN) throw new RangeError(`The pepper of API keys must have at least ${PEPPER_LENGTH_MIN} characters.`);
  }

  mint(): MintedKey {
    const key = KEY_PREFIX + randomBytes(KEY_BYTES).toString('base64url');
    return { key, hmac: this.hmac(key), prefix: key.slice(0, SHOWN_PREFIX_LENGTH), lastFour: key.slice(-4) };
  }

  hmac(presented: string): string {
    return this.digest(presented).toString('hex');
  }

  isSame(presented: string, secret: string): boolean {
    return timingSafeEqual(this.digest(presented), this.digest(secret));
  }

  /** HKDF-SHA-256 (RFC 5869) with the organisation as its info, so that one salt tells nothing of another, nor of the key. */
  cacheSalt(organisationId: string): string {
    const known = this.salts.get(organisationId);
    if (known !== undefined) return known;
    const salt = Buffer.from(hkdfSync('sha256', this.saltKey, '', `penstock/cache-salt/${organisationId}`, SALT_BYTES)).toString('base64url');
    if (this.salts.size >= SALTS_KEPT_MAX) this.salts.clear();
    this.salts.set(organisationId, salt);
    return salt;
  }

  private digest(presented: string): Buffer {
    return createHmac('sha256', this.pepper).update(presented).digest();
  }
}
