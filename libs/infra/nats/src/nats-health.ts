import type { NatsLink } from './connect-nats.js';

export interface NatsHealthProbe {
  readonly name: string;
  check(): Promise<string | undefined>;
}

/** A readiness probe: undefined when the server answers a round trip, else what is wrong. */
export function natsHealth(link: NatsLink): NatsHealthProbe {
  return {
    name: 'nats',
    check: async () => {
      if (link.state() !== 'connected') return `the connection to NATS is ${link.state()}`;
      await link.connection.flush();
      return undefined;
    },
  };
}
