import { closeSync, fdatasync, fsync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const dataSync = promisify(fdatasync);
const folderSync = promisify(fsync);

/** A file that only grows. Writes are in the kernel when `append` returns, so a killed process loses none of them. */
export class AppendFile {
  private readonly descriptor: number;
  private written = 0;
  private isTorn = false;
  private isNew = true;
  private isClosed = false;

  constructor(readonly path: string) {
    this.descriptor = openSync(path, 'ax', 0o600);
  }

  get bytes(): number {
    return this.written;
  }

  /** Throws when the disk is full; the next append then starts on a line of its own. */
  append(text: string): void {
    const buffer = Buffer.from(this.isTorn ? `\n${text}` : text);
    let offset = 0;
    try {
      while (offset < buffer.length) offset += writeSync(this.descriptor, buffer, offset);
      this.isTorn = false;
    } catch (error) {
      if (offset > 0) this.isTorn = true;
      throw error;
    } finally {
      this.written += offset;
    }
  }

  /** Resolves once everything appended before the call survives a power cut. */
  async sync(): Promise<void> {
    if (this.isClosed) return;
    await dataSync(this.descriptor);
    if (!this.isNew) return;
    this.isNew = false;
    const folder = openSync(dirname(this.path), 'r');
    try {
      await folderSync(folder);
    } finally {
      closeSync(folder);
    }
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    closeSync(this.descriptor);
  }

  remove(): void {
    this.close();
    rmSync(this.path, { force: true });
  }
}
