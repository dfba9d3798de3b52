import { SingleBar } from 'cli-progress';
import { formatBytes } from './format.js';

/** One thing that goes on, shown as a bar on a terminal and as a line every few percent elsewhere. */
export class ProgressLine {
  private bar: SingleBar | undefined;
  private lastLogged = -1;

  constructor(private readonly stream: NodeJS.WriteStream = process.stderr) {}

  /** `total` of undefined means that the size is not known yet. */
  update(label: string, completed: number, total: number | undefined): void {
    if (!this.stream.isTTY) {
      this.logEveryTenth(label, completed, total);
      return;
    }
    if (this.bar === undefined) {
      this.bar = new SingleBar({ stream: this.stream, format: '{label} [{bar}] {percentage}% {done} of {size}, {eta} s left', hideCursor: true, clearOnComplete: true, etaBuffer: 50 });
      this.bar.start(Math.max(total ?? 1, 1), completed, { label, done: '', size: '' });
    }
    this.bar.setTotal(Math.max(total ?? completed, 1));
    this.bar.update(completed, { label, done: formatBytes(completed), size: total === undefined ? '?' : formatBytes(total) });
  }

  stop(): void {
    this.bar?.stop();
    this.bar = undefined;
    this.lastLogged = -1;
  }

  private logEveryTenth(label: string, completed: number, total: number | undefined): void {
    const tenth = total === undefined || total === 0 ? 0 : Math.floor((completed / total) * 10);
    if (tenth === this.lastLogged) return;
    this.lastLogged = tenth;
    this.stream.write(total === undefined ? `${label}…\n` : `${label}: ${formatBytes(completed)} of ${formatBytes(total)} (${tenth * 10} %)\n`);
  }
}
