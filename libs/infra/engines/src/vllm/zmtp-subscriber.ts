import { connect } from 'node:net';
import { ZmtpError, ZmtpReader, type ZmtpItem } from './zmtp-reader.js';

/** How long a peer may be silent before it is ready. */
const HANDSHAKE_SILENCE_MS = 5_000;
/** A stream may be silent for hours; that its peer still lives is the system's to find out. */
const KEEP_ALIVE_MS = 30_000;

export interface ZmtpListener {
  /** The peer is ready: what it publishes from about now on is heard. */
  onReady(): void;
  /** What is thrown here ends the subscription. */
  onMessage(parts: readonly Buffer[]): void;
  /** Called once when the connection is over, and not after `close`. Nothing connects again by itself. */
  onEnd(): void;
}

/**
 * Subscribes to everything that a ZeroMQ PUB socket publishes over TCP: ZMTP 3.0 (RFC 23) as SUB with the NULL mechanism, which every
 * libzmq since 4.0 answers. A slow reader loses messages at the publisher, as with every PUB socket.
 */
export function subscribeZmtp({ host, port }: { readonly host: string; readonly port: number }, listener: ZmtpListener): { close(): void } {
  const socket = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS });
  const reader = new ZmtpReader();
  let isOpen = true;
  const end = (): void => {
    socket.destroy();
    if (!isOpen) return;
    isOpen = false;
    listener.onEnd();
  };
  let isReady = false;
  const hear = (item: ZmtpItem): void => {
    if (isReady) {
      // Commands after the handshake are heartbeats of later versions, which a peer of version 3.0 is not sent.
      if (item.kind === 'message') listener.onMessage(item.parts);
      return;
    }
    if (item.kind !== 'command' || item.name !== 'READY') throw new ZmtpError('the peer is not ready');
    isReady = true;
    socket.setTimeout(0);
    // Not sooner: libzmq hangs up on a peer that subscribes before the handshake is over.
    socket.write(subscription(''));
    listener.onReady();
  };
  socket.setTimeout(HANDSHAKE_SILENCE_MS, end);
  socket.once('connect', () => socket.write(hello()));
  socket.once('error', end);
  socket.once('close', end);
  socket.on('data', (chunk) => {
    try {
      for (const item of reader.push(chunk)) if (isOpen) hear(item);
    } catch {
      end();
    }
  });
  return {
    close: () => {
      isOpen = false;
      socket.destroy();
    },
  };
}

/** Signature, version 3.0, the mechanism NULL padded to 20 bytes, not a server, filler up to 64 bytes; then the command that we are ready. */
function hello(): Buffer {
  const greeting = Buffer.alloc(64);
  greeting.set([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0]);
  greeting.write('NULL', 12, 'latin1');
  const ready = Buffer.from('\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB', 'latin1');
  return Buffer.concat([greeting, Buffer.from([0x04, ready.length]), ready]);
}

function subscription(topic: string): Buffer {
  const prefix = Buffer.from(topic);
  return Buffer.concat([Buffer.from([0x00, prefix.length + 1, 0x01]), prefix]);
}
