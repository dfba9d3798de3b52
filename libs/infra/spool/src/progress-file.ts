import type { UsageProgress } from '@penstock/domain-usage';
import { AppendFile } from './append-file.js';
import { encodeLine } from './spool-line.js';

/** A new file begins after this much, with only what is still open. */
const PROGRESS_BYTES_MAX = 1_024 * 1_024;

/** How far open requests got, in a file of its own: it grows with every token, and none of it matters once a request ended. */
export class ProgressFile {
  private readonly latest = new Map<string, UsageProgress>();
  private readonly changed = new Set<string>();
  private file: AppendFile;
  private carriedBytes = 0;

  constructor(private readonly pathOf: (number: number) => string, private number: number) {
    this.file = new AppendFile(pathOf(number));
  }

  get bytes(): number {
    return this.file.bytes;
  }

  note(requestId: string, progress: UsageProgress): void {
    this.latest.set(requestId, progress);
    this.changed.add(requestId);
  }

  forget(requestId: string): void {
    this.latest.delete(requestId);
    this.changed.delete(requestId);
  }

  /** Writes what changed since the last flush. */
  flush(): void {
    if (this.changed.size === 0) return;
    if (this.file.bytes - this.carriedBytes > PROGRESS_BYTES_MAX) this.rotate();
    else this.file.append(this.linesOf(this.changed));
    this.changed.clear();
  }

  close(remove: boolean): void {
    if (remove) this.file.remove();
    else this.file.close();
  }

  private rotate(): void {
    this.number += 1;
    const next = new AppendFile(this.pathOf(this.number));
    next.append(this.linesOf(this.latest.keys()));
    this.carriedBytes = next.bytes;
    this.file.remove();
    this.file = next;
  }

  private linesOf(ids: Iterable<string>): string {
    let text = '';
    for (const id of ids) {
      const progress = this.latest.get(id);
      if (progress !== undefined) text += encodeLine({ t: 'progress', id, progress });
    }
    return text;
  }
}
