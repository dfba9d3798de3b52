import type { Signals, Subscription } from '@penstock/kernel';

interface Listener {
  readonly pattern: readonly string[];
  readonly onMessage: (data: unknown, subject: string) => void;
}

/** Signals inside one process, delivered at once. Bodies go through JSON, as on the wire. */
export class MemorySignals implements Signals {
  private readonly listeners = new Set<Listener>();
  readonly published: { readonly subject: string; readonly data: unknown }[] = [];

  publish(subject: string, data: unknown): void {
    const copy = JSON.parse(JSON.stringify(data)) as unknown;
    this.published.push({ subject, data: copy });
    for (const listener of [...this.listeners]) if (matches(listener.pattern, subject.split('.'))) listener.onMessage(copy, subject);
  }

  subscribe(subject: string, onMessage: (data: unknown, subject: string) => void): Promise<Subscription> {
    const listener = { pattern: subject.split('.'), onMessage };
    this.listeners.add(listener);
    return Promise.resolve({
      close: () => {
        this.listeners.delete(listener);
        return Promise.resolve();
      },
    });
  }
}

function matches(pattern: readonly string[], tokens: readonly string[]): boolean {
  if (pattern.at(-1) === '>') return tokens.length >= pattern.length && pattern.slice(0, -1).every((part, index) => part === '*' || part === tokens[index]);
  return pattern.length === tokens.length && pattern.every((part, index) => part === '*' || part === tokens[index]);
}
