/** A head larger than this is no answer of an engine. In bytes. */
export const HEAD_BYTES_MAX = 64 * 1_024;
/** The line before a chunk, its extensions included. In bytes. */
const CHUNK_LINE_MAX = 1_024;
const CR = 0x0d;
const LF = 0x0a;

export interface ResponseListener {
  /** The head of the final answer; interim ones are skipped. */
  onHead(status: number): void;
  onBody(bytes: Buffer): void;
  /** The answer is complete. */
  onComplete(): void;
}

/** What came is no HTTP/1.1 answer, or one that can be read in two ways. */
export class MalformedResponseError extends Error {
  override readonly name = 'MalformedResponseError';
}

type State = 'head' | 'length' | 'until-close' | 'chunk-line' | 'chunk-data' | 'chunk-end' | 'trailers' | 'complete';

/**
 * Reads one HTTP/1.1 answer to a POST (RFC 9112), however its bytes were cut. It takes what servers send and refuses what could be
 * read in two ways: then the connection is not used again.
 */
export class ResponseParser {
  private state: State = 'head';
  private rest: Buffer | undefined;
  private left = 0;
  private trailerBytes = 0;
  /** Whether another request may go over the connection afterwards. */
  keepsAlive = true;

  constructor(private readonly listener: ResponseListener) {}

  get hasHead(): boolean {
    return this.state !== 'head';
  }

  get isComplete(): boolean {
    return this.state === 'complete';
  }

  /** Throws a {@link MalformedResponseError}; call it no more then. */
  push(bytes: Buffer): void {
    let data = bytes;
    if (this.rest !== undefined) {
      data = Buffer.concat([this.rest, bytes]);
      this.rest = undefined;
    }
    let at = 0;
    while (at < data.length) {
      const next = this.step(data, at);
      if (next < 0) {
        // The bytes are the connection's, which reads the next ones into the same place.
        this.rest = Buffer.from(data.subarray(at));
        return;
      }
      at = next;
    }
  }

  /** The connection ended. True when the answer is complete with that. */
  end(): boolean {
    if (this.state !== 'until-close') return this.isComplete;
    this.complete();
    return true;
  }

  /** Reads on from `at` and returns where it stopped; -1 when more bytes are needed to go on. */
  private step(data: Buffer, at: number): number {
    switch (this.state) {
      case 'head':
        return this.readHead(data, at);
      case 'length':
      case 'chunk-data':
        return this.readBytes(data, at);
      case 'until-close':
        this.listener.onBody(at === 0 ? data : data.subarray(at));
        return data.length;
      case 'chunk-line':
        return this.readChunkLine(data, at);
      case 'chunk-end':
        if (data.length - at < 2) return -1;
        if (data[at] !== CR || data[at + 1] !== LF) throw new MalformedResponseError('a chunk does not end with a line break');
        this.state = 'chunk-line';
        return at + 2;
      case 'trailers':
        return this.readTrailer(data, at);
      case 'complete':
        throw new MalformedResponseError('bytes after the end of the answer');
    }
  }

  private readHead(data: Buffer, at: number): number {
    const end = data.indexOf('\r\n\r\n', at, 'latin1');
    if (end < 0) {
      if (data.length - at > HEAD_BYTES_MAX) throw new MalformedResponseError('the head is too long');
      return -1;
    }
    this.takeHead(data.toString('latin1', at, end));
    return end + 4;
  }

  private takeHead(head: string): void {
    const line = /^HTTP\/1\.([01]) (\d{3})(?: [^\r\n]*)?(?:\r\n|$)/.exec(head);
    if (line === null) throw new MalformedResponseError('no status line');
    const status = Number(line[2]);
    if (status === 101) throw new MalformedResponseError('an answer that switches protocols');
    if (status < 200) return;
    const lengths = new Set<string>();
    let encoding: string | undefined;
    this.keepsAlive = line[1] === '1';
    for (const field of head.slice(line[0].length).split('\r\n')) {
      const colon = field.indexOf(':');
      if (colon <= 0 || /\s/.test(field.charAt(colon - 1)) || /^[ \t]/.test(field)) {
        if (field === '') continue;
        throw new MalformedResponseError('a header that is none');
      }
      const name = field.slice(0, colon).toLowerCase();
      if (name === 'content-length') lengths.add(field.slice(colon + 1).trim());
      else if (name === 'transfer-encoding') encoding = `${encoding === undefined ? '' : `${encoding},`}${field.slice(colon + 1).trim().toLowerCase()}`;
      else if (name === 'connection') this.keepsAlive = /\bclose\b/i.test(field) ? false : this.keepsAlive;
    }
    this.chooseBody(status, lengths, encoding);
    this.listener.onHead(status);
    if (this.state === 'length' && this.left === 0) this.complete();
  }

  private chooseBody(status: number, lengths: ReadonlySet<string>, encoding: string | undefined): void {
    const [length, other] = lengths;
    if (other !== undefined || (length !== undefined && !/^\d{1,15}$/.test(length))) throw new MalformedResponseError('no clear length');
    if (encoding !== undefined && (encoding !== 'chunked' || length !== undefined)) throw new MalformedResponseError('no clear transfer encoding');
    if (status === 204 || status === 304) [this.state, this.left] = ['length', 0];
    else if (encoding !== undefined) this.state = 'chunk-line';
    else if (length !== undefined) [this.state, this.left] = ['length', Number(length)];
    else [this.state, this.keepsAlive] = ['until-close', false];
  }

  private readBytes(data: Buffer, at: number): number {
    const end = Math.min(data.length, at + this.left);
    this.left -= end - at;
    this.listener.onBody(at === 0 && end === data.length ? data : data.subarray(at, end));
    if (this.left > 0) return end;
    if (this.state === 'chunk-data') this.state = 'chunk-end';
    else this.complete();
    return end;
  }

  private readChunkLine(data: Buffer, at: number): number {
    const end = data.indexOf(LF, at);
    if (end < 0) {
      if (data.length - at > CHUNK_LINE_MAX) throw new MalformedResponseError('the line before a chunk is too long');
      return -1;
    }
    this.left = chunkSize(data, at, end);
    this.state = this.left === 0 ? 'trailers' : 'chunk-data';
    return end + 1;
  }

  /** Trailers are of no use here. */
  private readTrailer(data: Buffer, at: number): number {
    const end = data.indexOf(LF, at);
    this.trailerBytes += end < 0 ? 0 : end + 1 - at;
    if (this.trailerBytes > HEAD_BYTES_MAX || (end < 0 && data.length - at > HEAD_BYTES_MAX)) throw new MalformedResponseError('the trailers are too long');
    if (end < 0) return -1;
    if (end === at + 1 && data[at] === CR) this.complete();
    else if (end === at) throw new MalformedResponseError('a bare line feed');
    return end + 1;
  }

  private complete(): void {
    this.state = 'complete';
    this.listener.onComplete();
  }
}

/** Hexadecimal digits up to the end of the line or an extension; at most 12, which no engine needs. */
function chunkSize(data: Buffer, start: number, lineFeed: number): number {
  const end = lineFeed - 1;
  if (end <= start || data[end] !== CR) throw new MalformedResponseError('the line before a chunk does not end with a line break');
  let size = 0;
  let at = start;
  for (; at < end; at += 1) {
    const digit = hexDigit(data[at] ?? 0);
    if (digit < 0) break;
    size = size * 16 + digit;
  }
  const after = data[at];
  if (at === start || at - start > 12 || (at < end && after !== 0x3b && after !== 0x20 && after !== 0x09)) throw new MalformedResponseError('the size of a chunk is no number');
  return size;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
