import type { EventStream } from './event-stream.js';

/** Endless streams of the admin API at once; each holds a socket and a subscription. */
export const OPEN_STREAMS_MAX = 200;

/** The endless streams that are open, so that a gateway that stops can close them. */
export class OpenStreams {
  private readonly streams = new Set<EventStream>();

  get isFull(): boolean {
    return this.streams.size >= OPEN_STREAMS_MAX;
  }

  /** Holds the stream until its client goes away, then cleans up. */
  async hold(stream: EventStream, cleanUp: () => Promise<void>): Promise<void> {
    this.streams.add(stream);
    try {
      await stream.gone;
    } finally {
      this.streams.delete(stream);
      stream.close();
      await cleanUp();
    }
  }

  closeAll(): void {
    for (const stream of this.streams) stream.close();
  }
}
