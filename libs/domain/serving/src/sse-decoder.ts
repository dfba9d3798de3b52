/** More than this without an end of event is no event stream. In characters. */
export const SSE_EVENT_MAX = 4 * 1_024 * 1_024;

/**
 * Splits an event stream into the `data` of its events, however the bytes were cut: CR, LF or CRLF, a space after the
 * colon or none, several data lines, comments. Other fields are ignored.
 */
export class SseDecoder {
  private rest = '';
  private data: string | undefined;
  private skipLineFeed = false;

  /** The data of every event that `text` completes. Throws a RangeError when an event outgrows {@link SSE_EVENT_MAX}. */
  push(text: string): string[] {
    const events: string[] = [];
    let buffer = this.rest + text;
    let start = 0;
    if (this.skipLineFeed && buffer.length > 0) {
      if (buffer.charCodeAt(0) === 0x0a) start = 1;
      this.skipLineFeed = false;
    }
    const hasReturns = buffer.includes('\r');
    for (;;) {
      const end = hasReturns ? endOfLine(buffer, start) : buffer.indexOf('\n', start);
      if (end < 0) break;
      this.takeLine(buffer.slice(start, end), events);
      start = end + 1;
      if (buffer.charCodeAt(end) !== 0x0d) continue;
      if (start >= buffer.length) this.skipLineFeed = true;
      else if (buffer.charCodeAt(start) === 0x0a) start += 1;
    }
    buffer = buffer.slice(start);
    if (buffer.length + (this.data?.length ?? 0) > SSE_EVENT_MAX) throw new RangeError('an event of the stream is too long');
    this.rest = buffer;
    return events;
  }

  /** The last event, where the stream ended without its blank line. */
  end(): string[] {
    const events: string[] = [];
    if (this.rest !== '') this.takeLine(this.rest, events);
    this.rest = '';
    this.takeLine('', events);
    return events;
  }

  private takeLine(line: string, events: string[]): void {
    if (line === '') {
      if (this.data !== undefined) events.push(this.data);
      this.data = undefined;
    } else if (line.startsWith('data:')) {
      const value = line.charCodeAt(5) === 0x20 ? line.slice(6) : line.slice(5);
      this.data = this.data === undefined ? value : `${this.data}\n${value}`;
    }
  }
}

function endOfLine(buffer: string, start: number): number {
  const lineFeed = buffer.indexOf('\n', start);
  const carriageReturn = buffer.indexOf('\r', start);
  if (lineFeed < 0) return carriageReturn;
  return carriageReturn < 0 ? lineFeed : Math.min(lineFeed, carriageReturn);
}
