import type { FileHandle } from 'node:fs/promises';

const WINDOW_BYTES = 1_048_576;

/** The file says of itself what cannot be: it is damaged, cut short or hostile. */
export class InvalidModelFileError extends Error {
  override readonly name = 'InvalidModelFileError';
}

/** Reads a file front to back in windows, without ever holding more than one window and one value. */
export class FileWindow {
  private window = Buffer.alloc(0);
  private windowStart = 0;
  private position = 0;

  constructor(private readonly file: FileHandle, private readonly size: number) {}

  get offset(): number {
    return this.position;
  }

  skip(bytes: number): void {
    if (!Number.isSafeInteger(bytes) || bytes < 0 || this.position + bytes > this.size) throw new InvalidModelFileError('the header points beyond the end of the file');
    this.position += bytes;
  }

  /** The next bytes; valid until the next call. */
  async take(bytes: number): Promise<Buffer> {
    const start = this.position;
    this.skip(bytes);
    const inside = start - this.windowStart;
    if (inside >= 0 && inside + bytes <= this.window.length) return this.window.subarray(inside, inside + bytes);
    const length = Math.min(Math.max(bytes, WINDOW_BYTES), this.size - start);
    const { bytesRead, buffer } = await this.file.read(Buffer.alloc(length), 0, length, start);
    if (bytesRead < bytes) throw new InvalidModelFileError('the file ends in the middle of its header');
    this.window = buffer.subarray(0, bytesRead);
    this.windowStart = start;
    return this.window.subarray(0, bytes);
  }
}
