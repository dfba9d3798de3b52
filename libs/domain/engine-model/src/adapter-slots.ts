/** The adapters on the accelerator. One that no running sequence uses makes room for another, the longest unused first. */
export class AdapterSlots {
  /** Running sequences of each resident adapter; the order is that of last use. */
  private readonly users = new Map<string, number>();

  constructor(private readonly slots: number) {}

  get resident(): readonly string[] {
    return [...this.users.keys()];
  }

  /** Counts one more running sequence. Says whether the adapter had to be brought in, or undefined when there is no room. */
  enter(adapter: string): 'resident' | 'loaded' | undefined {
    const users = this.users.get(adapter);
    if (users === undefined && this.users.size >= this.slots) {
      const idle = [...this.users].find(([, count]) => count === 0)?.[0];
      if (idle === undefined) return undefined;
      this.users.delete(idle);
    }
    this.users.delete(adapter);
    this.users.set(adapter, (users ?? 0) + 1);
    return users === undefined ? 'loaded' : 'resident';
  }

  /** Whether `enter` would find room. */
  hasRoom(adapter: string): boolean {
    return this.users.has(adapter) || this.users.size < this.slots || [...this.users.values()].includes(0);
  }

  leave(adapter: string): void {
    this.users.set(adapter, Math.max(0, (this.users.get(adapter) ?? 0) - 1));
  }
}
