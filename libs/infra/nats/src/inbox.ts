import { createInbox, type NatsConnection } from '@nats-io/transport-node';

const prefixes = new WeakMap<NatsConnection, string>();

/** Keeps under which prefix a connection may listen for answers; the library does not tell it. */
export function rememberInboxPrefix(connection: NatsConnection, prefix: string): void {
  prefixes.set(connection, prefix);
}

/** A fresh subject for answers, below the connection's own prefix. */
export function inboxOf(connection: NatsConnection): string {
  return createInbox(prefixes.get(connection) ?? '');
}
