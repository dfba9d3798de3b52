/** Bytes of one message of a publisher, all its parts together; more is not read. */
export const MESSAGE_BYTES_MAX = 8 * 1_024 * 1_024;
/** Parts of one message. */
export const MESSAGE_PARTS_MAX = 8;

const GREETING_BYTES = 64;
const MORE = 0x01;
const LONG = 0x02;
const COMMAND = 0x04;
const LONG_SIZE_BYTES = 8;

/** What a peer says after its greeting. */
export type ZmtpItem =
  | { readonly kind: 'command'; readonly name: string; readonly body: Buffer }
  | { readonly kind: 'message'; readonly parts: readonly Buffer[] };

/** The peer does not speak ZMTP 3 with the NULL mechanism, or says more than is read. */
export class ZmtpError extends Error {}

interface FrameHead {
  readonly flags: number;
  readonly bytes: number;
}

/**
 * Reads the byte stream of a ZMTP 3.x peer, however it is cut (RFC 23/ZMTP, section "Framing"). It holds at most one message.
 * Throws {@link ZmtpError} for what is no such stream or beyond the bounds; the reader is of no use after that.
 */
export class ZmtpReader {
  private chunks: Buffer[] = [];
  private held = 0;
  private hasGreeting = false;
  private head: FrameHead | undefined;
  private parts: Buffer[] = [];
  private partBytes = 0;

  /** Takes bytes in; returns what is complete with them. */
  push(chunk: Buffer): readonly ZmtpItem[] {
    if (chunk.length === 0) return [];
    this.chunks.push(chunk);
    this.held += chunk.length;
    const items: ZmtpItem[] = [];
    if (!this.hasGreeting && !this.readGreeting()) return items;
    for (;;) {
      this.head ??= this.readHead();
      if (this.head === undefined) return items;
      const body = this.take(this.head.bytes);
      if (body === undefined) return items;
      const item = this.endFrame(this.head.flags, body);
      this.head = undefined;
      if (item !== undefined) items.push(item);
    }
  }

  private readGreeting(): boolean {
    // A peer that speaks something else is found out by its first byte, and need not send all of a greeting.
    if (this.chunks[0]?.[0] !== 0xff) throw new ZmtpError('the peer does not begin as ZMTP does');
    const greeting = this.take(GREETING_BYTES);
    if (greeting === undefined) return false;
    if (greeting[9] !== 0x7f || (greeting[10] ?? 0) < 3) throw new ZmtpError('the peer does not speak version 3 of ZMTP');
    const mechanism = greeting.toString('latin1', 12, 32).replace(/\0+$/, '');
    if (mechanism !== 'NULL') throw new ZmtpError('the peer asks for a security mechanism, and only NULL is spoken');
    this.hasGreeting = true;
    return true;
  }

  private readHead(): FrameHead | undefined {
    const start = this.peek(2);
    if (start === undefined) return undefined;
    const flags = start[0] ?? 0;
    if ((flags & ~(MORE | LONG | COMMAND)) !== 0 || (flags & (MORE | COMMAND)) === (MORE | COMMAND)) throw new ZmtpError(`a frame has the flags ${flags}`);
    const isLong = (flags & LONG) !== 0;
    const head = isLong ? this.take(1 + LONG_SIZE_BYTES) : this.take(2);
    if (head === undefined) return undefined;
    const bytes = isLong ? Number(head.readBigUInt64BE(1)) : head[1] ?? 0;
    if (this.partBytes + bytes > MESSAGE_BYTES_MAX) throw new ZmtpError(`a message has more than ${MESSAGE_BYTES_MAX} bytes`);
    return { flags, bytes };
  }

  private endFrame(flags: number, body: Buffer): ZmtpItem | undefined {
    if ((flags & COMMAND) !== 0) {
      const nameEnd = 1 + (body[0] ?? 0);
      if (body.length === 0 || body.length < nameEnd) throw new ZmtpError('a command has no name');
      return { kind: 'command', name: body.toString('latin1', 1, nameEnd), body: body.subarray(nameEnd) };
    }
    this.parts.push(body);
    this.partBytes += body.length;
    if (this.parts.length > MESSAGE_PARTS_MAX) throw new ZmtpError(`a message has more than ${MESSAGE_PARTS_MAX} parts`);
    if ((flags & MORE) !== 0) return undefined;
    const parts = this.parts;
    this.parts = [];
    this.partBytes = 0;
    return { kind: 'message', parts };
  }

  private take(bytes: number): Buffer | undefined {
    const taken = this.peek(bytes);
    if (taken === undefined) return undefined;
    const [first] = this.chunks;
    this.chunks = first === undefined || first.length === bytes ? [] : [first.subarray(bytes)];
    this.held -= bytes;
    return taken;
  }

  /** The next so many bytes, which stay; undefined before they are all there. Chunks are joined only then, so that long frames cost one copy. */
  private peek(bytes: number): Buffer | undefined {
    if (this.held < bytes) return undefined;
    if ((this.chunks[0]?.length ?? 0) < bytes) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0]?.subarray(0, bytes) ?? Buffer.alloc(0);
  }
}
