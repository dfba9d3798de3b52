import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { KEY_PREFIX, type KeyMinter, type MintedKey } from '@penstock/domain-access';

const KEY_BYTES = 32;
const SHOWN_PREFIX_LENGTH = KEY_PREFIX.length + 4;
/** A shorter pepper could be guessed from one leaked HMAC. */
const PEPPER_LENGTH_MIN = 16;

/** Keys under an installation's pepper: without it a stolen list of HMACs cannot be turned into keys, nor used as keys. */
export class HmacKeyMinter implements KeyMinter {
  constructor(private readonly pepper: string) {
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

  private digest(presented: string): Buffer {
    return createHmac('sha256', this.pepper).update(presented).digest();
  }
}
