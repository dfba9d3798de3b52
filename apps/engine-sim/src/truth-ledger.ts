import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

export type LedgerFinish = 'stop' | 'length' | 'abort' | 'error';

/** The first line of a request. A start without an end says that the engine itself was killed in between. */
export interface LedgerStart {
  readonly event: 'start';
  readonly requestId: string;
  readonly promptTokens: number;
  readonly startedAt: string;
}

export interface LedgerEnd {
  readonly event: 'end';
  readonly requestId: string;
  readonly promptTokens: number;
  /** Tokens generated, over all choices. */
  readonly producedTokens: number;
  /** Of these, tokens whose bytes the kernel took for the client's connection. */
  readonly deliveredTokens: number;
  readonly finished: LedgerFinish;
  readonly startedAt: string;
  readonly endedAt: string;
}

/** Appends what really happened, so that accounting can be checked against it. A line is in the kernel when `write` returns. */
export class TruthLedger {
  private readonly descriptor: number | undefined;

  constructor(path: string | undefined) {
    if (path === undefined) return;
    mkdirSync(dirname(path), { recursive: true });
    this.descriptor = openSync(path, 'a', 0o600);
  }

  write(line: LedgerStart | LedgerEnd): void {
    if (this.descriptor !== undefined) writeSync(this.descriptor, `${JSON.stringify(line)}\n`);
  }

  close(): void {
    if (this.descriptor !== undefined) closeSync(this.descriptor);
  }
}
