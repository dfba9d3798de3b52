import { MultiBar, type SingleBar } from 'cli-progress';
import { formatBytes } from './format.js';

/** Things that go on at the same time: a bar for each on a terminal, a line for each tenth elsewhere. */
export class ProgressLine {
  private bars: MultiBar | undefined;
  private readonly barOf = new Map<string, SingleBar>();
  private readonly tenthOf = new Map<string, number>();

  constructor(private readonly stream: NodeJS.WriteStream = process.stderr) {}

  /** `total` of undefined means that the size is not known yet. */
  update(label: string, completed: number, total: number | undefined): void {
    if (!this.stream.isTTY) {
      this.logEachTenth(label, completed, total);
      return;
    }
    this.bars ??= new MultiBar({ stream: this.stream, format: '{label} [{bar}] {percentage}% {done} of {size}, {eta} s left', hideCursor: true, clearOnComplete: true, etaBuffer: 50 });
    const bar = this.barOf.get(label) ?? this.bars.create(1, 0, { label, done: '', size: '' });
    this.barOf.set(label, bar);
    bar.setTotal(Math.max(total ?? completed, 1));
    bar.update(completed, { label, done: formatBytes(completed), size: total === undefined ? '?' : formatBytes(total) });
  }

  /** Takes every bar off the terminal. */
  stop(): void {
    this.bars?.stop();
    this.bars = undefined;
    this.barOf.clear();
  }

  private logEachTenth(label: string, completed: number, total: number | undefined): void {
    const tenth = total === undefined || total === 0 ? 0 : Math.floor((completed / total) * 10);
    if (tenth <= (this.tenthOf.get(label) ?? -1)) return;
    this.tenthOf.set(label, tenth);
    this.stream.write(total === undefined ? `${label}…\n` : `${label}: ${formatBytes(completed)} of ${formatBytes(total)} (${tenth * 10} %)\n`);
  }
}
