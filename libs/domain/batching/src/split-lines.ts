/** A longer line is a fault of the input; its bytes are dropped while they arrive, so memory stays flat. */
export const LINE_BYTES_MAX = 4 * 1024 * 1024;

/** One line of a JSONL file, without its line break. */
export interface Line {
  /** From 1, blank lines counted. */
  readonly number: number;
  /** Where the line begins in the file, and where the next one does. */
  readonly byteStart: number;
  readonly byteEnd: number;
  /** Null when the line is longer than {@link LINE_BYTES_MAX}. */
  readonly bytes: Uint8Array | null;
}

export interface SplitStart {
  readonly lineNumber: number;
  readonly byteOffset: number;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

/** Splits a stream into lines at LF or CRLF; the last line needs no break. A byte order mark at the start of the file is dropped. */
export async function* splitLines(source: AsyncIterable<Uint8Array>, start: SplitStart = { lineNumber: 1, byteOffset: 0 }): AsyncGenerator<Line> {
  const lines = new LineBuilder(start);
  for await (const block of source) yield* lines.push(block);
  const last = lines.finish();
  if (last !== undefined) yield last;
}

class LineBuilder {
  private parts: Uint8Array[] = [];
  private partBytes = 0;
  private isOversized = false;
  private number: number;
  private byteStart: number;
  private position: number;

  constructor(start: SplitStart) {
    this.number = start.lineNumber;
    this.byteStart = start.byteOffset;
    this.position = start.byteOffset;
  }

  *push(block: Uint8Array): Generator<Line> {
    let from = 0;
    for (let end = block.indexOf(LINE_FEED); end >= 0; end = block.indexOf(LINE_FEED, from)) {
      this.keep(block.subarray(from, end));
      this.position += 1;
      yield this.take();
      from = end + 1;
    }
    this.keep(block.subarray(from));
  }

  finish(): Line | undefined {
    return this.position > this.byteStart ? this.take() : undefined;
  }

  private keep(part: Uint8Array): void {
    this.position += part.length;
    this.partBytes += part.length;
    // A carriage return of the line break does not count, so one byte more is kept.
    if (this.partBytes > LINE_BYTES_MAX + 1) {
      this.isOversized = true;
      this.parts = [];
    } else if (part.length > 0) {
      this.parts.push(part);
    }
  }

  private take(): Line {
    const bytes = this.isOversized ? null : this.trimmed(joined(this.parts, this.partBytes));
    const line = { number: this.number, byteStart: this.byteStart, byteEnd: this.position, bytes: bytes === null || bytes.length > LINE_BYTES_MAX ? null : bytes };
    this.number += 1;
    this.byteStart = this.position;
    this.parts = [];
    this.partBytes = 0;
    this.isOversized = false;
    return line;
  }

  private trimmed(bytes: Uint8Array): Uint8Array {
    const end = bytes.at(-1) === CARRIAGE_RETURN ? bytes.length - 1 : bytes.length;
    const hasMark = this.byteStart === 0 && BYTE_ORDER_MARK.every((byte, index) => bytes[index] === byte);
    return bytes.subarray(hasMark ? BYTE_ORDER_MARK.length : 0, end);
  }
}

function joined(parts: readonly Uint8Array[], total: number): Uint8Array {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(total);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
