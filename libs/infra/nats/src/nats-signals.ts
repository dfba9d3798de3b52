import type { Signals, Subscription } from '@penstock/kernel';
import { textOf } from './broker-api.js';
import type { NatsLink } from './connect-nats.js';

/** Live signals over core NATS. While disconnected they are dropped: an old load figure is worth nothing. */
export class NatsSignals implements Signals {
  constructor(private readonly link: NatsLink) {}

  publish(subject: string, data: unknown): void {
    if (this.link.state() !== 'connected') return;
    try {
      this.link.connection.publish(subject, JSON.stringify(data));
    } catch {
      // The connection is draining or the body is too large: a single signal may always be lost.
    }
  }

  subscribe(subject: string, onMessage: (data: unknown, subject: string) => void): Promise<Subscription> {
    const subscription = this.link.connection.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null) return;
        const data = parsed(message.data);
        if (data !== undefined) onMessage(data, message.subject);
      },
    });
    return Promise.resolve({
      close: () => {
        subscription.unsubscribe();
        return Promise.resolve();
      },
    });
  }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(textOf(bytes)) as unknown;
  } catch {
    return undefined;
  }
}
