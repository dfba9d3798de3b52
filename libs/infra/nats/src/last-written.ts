/** Subjects whose last write is remembered. One that falls out is only read with less care. */
const SUBJECTS_MAX = 10_000;

/** Remembers the newest sequence this process knows per subject, so that a load from a lagging replica is noticed. */
export class LastWritten {
  private readonly sequences = new Map<string, number>();

  remember(subject: string, sequence: number): void {
    const known = this.sequences.get(subject) ?? 0;
    this.sequences.delete(subject);
    this.sequences.set(subject, Math.max(known, sequence));
    if (this.sequences.size <= SUBJECTS_MAX) return;
    for (const oldest of this.sequences.keys()) {
      this.sequences.delete(oldest);
      return;
    }
  }

  sequenceOf(subject: string): number {
    return this.sequences.get(subject) ?? 0;
  }
}
