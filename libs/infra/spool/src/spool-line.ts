import type { UsageRecord } from '@penstock/contract-events';
import type { UsageDraft, UsageProgress } from '@penstock/domain-usage';

/** One line of the spool. */
export type SpoolLine =
  | { readonly t: 'open'; readonly draft: UsageDraft }
  | { readonly t: 'progress'; readonly id: string; readonly progress: UsageProgress }
  | { readonly t: 'settle'; readonly record: UsageRecord }
  /** These go to the event log as one event, in this order. */
  | { readonly t: 'join'; readonly ids: readonly string[] }
  /** The event log has these; they need not be sent again. */
  | { readonly t: 'ack'; readonly ids: readonly string[] };

export function encodeLine(line: SpoolLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** The line of a record that was written as JSON already. */
export function settledLine(recordJson: string): string {
  return `{"t":"settle","record":${recordJson}}\n`;
}

export interface DecodedLines {
  readonly lines: readonly SpoolLine[];
  /** Lines that cannot be read, apart from a torn one at the end, which a crash leaves behind. */
  readonly damaged: number;
}

export function decodeLines(text: string): DecodedLines {
  const lines: SpoolLine[] = [];
  let damaged = 0;
  const pieces = text.split('\n');
  // What follows the last line break was not written whole.
  pieces.pop();
  for (const piece of pieces) {
    if (piece === '') continue;
    try {
      lines.push(JSON.parse(piece) as SpoolLine);
    } catch {
      damaged += 1;
    }
  }
  return { lines, damaged };
}
