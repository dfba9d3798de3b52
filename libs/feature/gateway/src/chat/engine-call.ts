import { StringDecoder } from 'node:string_decoder';
import type { Dispatcher } from 'undici';
import type { Connections } from './replica-clients.js';

export interface EngineRequest {
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What an engine sends, as it comes. Nothing is called after `abort`. */
export interface EngineListener {
  onStatus(status: number): void;
  onText(text: string): void;
}

/** How a call ended. `lost` says that the connection broke; nothing of the answer had come when `beforeAnswer` is true. */
export type EngineEnd = { readonly kind: 'ended' } | { readonly kind: 'aborted' } | { readonly kind: 'lost'; readonly beforeAnswer: boolean; readonly error: Error };

const ended: EngineEnd = { kind: 'ended' };
const aborted: EngineEnd = { kind: 'aborted' };

/** One request to an engine, with back-pressure, that can be given up at any moment. */
export class EngineCall {
  private controller: Dispatcher.DispatchController | undefined;
  private abortReason: Error | undefined;
  private isPaused = false;

  /** Sends the request; resolves when the answer is over, in whichever way. */
  send(connections: Connections, request: EngineRequest, listener: EngineListener): Promise<EngineEnd> {
    const decoder = new StringDecoder('utf8');
    const connection = connections.take();
    let hasAnswer = false;
    return new Promise((resolve) => {
      const end = (how: EngineEnd): void => {
        connections.give(connection);
        resolve(this.abortReason === undefined ? how : aborted);
      };
      connection.dispatch({ path: connections.pathPrefix + request.path, method: 'POST', body: request.body, headers: request.headers }, {
        onRequestStart: (controller) => {
          this.controller = controller;
          if (this.abortReason !== undefined) controller.abort(this.abortReason);
          else if (this.isPaused) controller.pause();
        },
        onResponseStart: (_controller, status) => {
          if (status < 200) return;
          hasAnswer = true;
          listener.onStatus(status);
        },
        onResponseData: (_controller, chunk) => {
          if (this.abortReason === undefined) listener.onText(decoder.write(chunk));
        },
        onResponseEnd: () => end(ended),
        onResponseError: (_controller, error) => end({ kind: 'lost', beforeAnswer: !hasAnswer, error }),
      });
    });
  }

  /** Closes the connection, which makes the engine stop. */
  abort(reason: string): void {
    if (this.abortReason !== undefined) return;
    this.abortReason = new Error(reason);
    this.controller?.abort(this.abortReason);
  }

  pause(): void {
    this.isPaused = true;
    this.controller?.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.controller?.resume();
  }
}

const STALE_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** The engine closed a kept connection in the moment it was used again: the same request may go out on a new one. */
export function isStaleConnection(end: EngineEnd): boolean {
  return end.kind === 'lost' && end.beforeAnswer && STALE_CODES.has((end.error as NodeJS.ErrnoException).code ?? '');
}
