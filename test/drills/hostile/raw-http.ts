import { Agent, request, type OutgoingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

const ANSWER_WAIT_MS = 5_000;
/** After the last byte of an answer: a second one would follow at once. */
const QUIET_MS = 250;

export interface RawAnswer {
  readonly text: string;
  /** Status lines that came back: more than one means that one request was taken for two. */
  readonly statuses: readonly number[];
  readonly closed: boolean;
}

/** Sends bytes as they are and collects what comes back until the server is quiet, closes, or takes too long. */
export function sendRaw(port: number, bytes: string | Buffer): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let quiet: NodeJS.Timeout | undefined;
    const done = (closed: boolean): void => {
      clearTimeout(quiet);
      clearTimeout(limit);
      socket.destroy();
      const text = Buffer.concat(chunks).toString('latin1');
      resolve({ text, statuses: [...text.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map((match) => Number(match[1])), closed });
    };
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const limit = setTimeout(() => done(false), ANSWER_WAIT_MS);
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      clearTimeout(quiet);
      quiet = setTimeout(() => done(false), QUIET_MS);
    });
    socket.once('error', () => done(true));
    socket.once('close', () => done(true));
  });
}

export interface PathAnswer {
  /** 0 when the connection ended without one. */
  readonly status: number;
  readonly text: string;
}

/** Sends one request whose path goes out exactly as given. */
export class PathClient {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 16 });

  constructor(private readonly port: number) {}

  ask(method: string, path: string, headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<PathAnswer> {
    return new Promise((resolve) => {
      const outgoing = request({ port: this.port, host: '127.0.0.1', method, path, agent: this.agent, headers: { ...headers, ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }) } }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }));
        response.once('error', () => resolve({ status: 0, text: '' }));
      });
      outgoing.setTimeout(ANSWER_WAIT_MS * 4, () => outgoing.destroy());
      outgoing.once('error', () => resolve({ status: 0, text: '' }));
      outgoing.end(body);
    });
  }

  close(): void {
    this.agent.destroy();
  }
}
