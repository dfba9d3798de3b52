import type { Signals, Subscription, Timers } from '@penstock/kernel';

const DELAY_MS_MAX = 30;
const LOST_CHANCE = 0.02;
const TWICE_CHANCE = 0.05;

interface Listener {
  readonly prefix: string;
  readonly onMessage: (data: unknown, subject: string) => void;
}

/** Live signals between processes: late, sometimes lost, sometimes twice; links can be cut one by one, nodes be silenced. */
export class SignalNetwork {
  readonly silentNodes = new Set<string>();
  private readonly links = new Set<SignalLink>();

  constructor(private readonly timers: Timers, private readonly random: () => number) {}

  /** Links of different sides of a split do not hear each other, except those of no side. */
  link(side?: number): SignalLink {
    const link = new SignalLink(this, side);
    this.links.add(link);
    return link;
  }

  remove(link: SignalLink): void {
    this.links.delete(link);
  }

  send(from: SignalLink, subject: string, data: unknown): void {
    if (from.isCut || (subject.startsWith('tele.node.') && this.silentNodes.has(subject.slice('tele.node.'.length)))) return;
    for (const link of this.links) {
      if (link.isCut || (link.side !== undefined && from.side !== undefined && link.side !== from.side) || !link.hears(subject) || this.random() < LOST_CHANCE) continue;
      const copies = this.random() < TWICE_CHANCE ? 2 : 1;
      for (let copy = 0; copy < copies; copy += 1) this.timers.after(this.random() * DELAY_MS_MAX, () => link.deliver(subject, data));
    }
  }
}

export class SignalLink implements Signals {
  isCut = false;
  private readonly listeners = new Set<Listener>();

  constructor(private readonly network: SignalNetwork, readonly side: number | undefined) {}

  publish(subject: string, data: unknown): void {
    this.network.send(this, subject, data);
  }

  async subscribe(subject: string, onMessage: Listener['onMessage']): Promise<Subscription> {
    const listener = { prefix: subject.replace(/[*>]$/, ''), onMessage };
    this.listeners.add(listener);
    return {
      close: async () => {
        this.listeners.delete(listener);
      },
    };
  }

  hears(subject: string): boolean {
    for (const { prefix } of this.listeners) if (subject.startsWith(prefix)) return true;
    return false;
  }

  deliver(subject: string, data: unknown): void {
    if (this.isCut) return;
    for (const { prefix, onMessage } of this.listeners) if (subject.startsWith(prefix)) onMessage(data, subject);
  }
}
