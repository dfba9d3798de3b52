import { MsgHdrsImpl } from '@nats-io/nats-core/internal';

const FIRST_LINE = 'NATS/1.0\r\n';

/** Headers of a message to be sent, written once as they go out: a record of them costs more than the rest of an append. */
export class WrittenHeaders extends MsgHdrsImpl {
  /** `lines` end in a line break each, and are of one byte a character. */
  constructor(private readonly lines: string) {
    super();
  }

  override encode(): Uint8Array {
    return Buffer.from(this.toString(), 'latin1');
  }

  override toString(): string {
    return `${FIRST_LINE}${this.lines}\r\n`;
  }
}
