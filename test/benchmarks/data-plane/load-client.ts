import { connect, type Socket } from 'node:net';
import { Arrivals } from './arrivals.js';

/** What one load was answered with. Times in milliseconds. */
export interface LoadResult {
  readonly requests: number;
  readonly errors: number;
  /** Events with a piece of text, for streams. */
  readonly chunks: number;
  /** From the request to the first byte of its answer's body. */
  readonly firstByteMs: readonly number[];
  /** From the request to its end. */
  readonly totalMs: readonly number[];
  /** Answers by status that is not 200; 0 stands for a connection that broke. */
  readonly failures: Readonly<Record<string, number>>;
}

export interface Target {
  readonly name: string;
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Puts the model's name into the body as this target knows it. */
  readonly model: string;
  /** Path of the chat route where it is another one. */
  readonly path?: string | undefined;
}

export interface LoadRequest {
  readonly path: string;
  readonly body: string;
}

const RESPONSE_WAIT_MS = 60_000;

export function renderRequest(target: Target, { path, body }: LoadRequest): Buffer {
  const lines = Object.entries({ host: `127.0.0.1:${target.port}`, 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)), ...target.headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
}

/** One connection that carries one request after the other. It reads no more of an answer than it must. */
class Connection {
  private socket: Socket | undefined;
  private resolve: ((status: number) => void) | undefined;
  private sentMs = 0;
  private firstMs = 0;
  private head = '';
  private status = 0;
  private left = -1;
  private tail = '';

  constructor(private readonly port: number, private readonly result: Collected) {}

  send(request: Buffer): Promise<number> {
    return new Promise((resolve) => {
      this.resolve = resolve;
      this.head = '';
      this.tail = '';
      this.left = -1;
      this.firstMs = 0;
      this.sentMs = performance.now();
      this.open().write(request);
    });
  }

  close(): void {
    this.socket?.destroy();
  }

  private open(): Socket {
    if (this.socket !== undefined && !this.socket.destroyed) return this.socket;
    const socket = connect({ port: this.port, host: '127.0.0.1', noDelay: true });
    socket.setTimeout(RESPONSE_WAIT_MS, () => socket.destroy());
    socket.on('data', (data: Buffer) => this.read(data));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.socket === socket) this.end(0);
    });
    this.socket = socket;
    return socket;
  }

  private read(data: Buffer): void {
    let body = data;
    if (this.left === -1) {
      this.head += data.toString('latin1');
      const end = this.head.indexOf('\r\n\r\n');
      if (end < 0) return;
      this.status = Number(this.head.slice(9, 12));
      const length = /\r\ncontent-length: *(\d+)/i.exec(this.head.slice(0, end + 2))?.[1];
      this.left = length === undefined ? -2 : Number(length);
      body = Buffer.from(this.head.slice(end + 4), 'latin1');
    }
    if (body.length > 0 && this.firstMs === 0) {
      this.firstMs = performance.now();
      this.result.begun += 1;
    }
    if (this.left >= 0) {
      this.left -= body.length;
      if (this.left <= 0) this.end(this.status);
      return;
    }
    const text = this.tail + body.toString('latin1');
    for (let at = text.indexOf('"content":"tok'); at >= 0; at = text.indexOf('"content":"tok', at + 14)) this.result.chunks += 1;
    // What a later piece may complete is kept, and too little of it to be counted twice.
    this.tail = text.slice(-13);
    if (text.endsWith('0\r\n\r\n')) this.end(this.status);
  }

  private end(status: number): void {
    const { resolve } = this;
    if (resolve === undefined) return;
    this.resolve = undefined;
    const nowMs = performance.now();
    this.result.note(status, this.firstMs - this.sentMs, nowMs - this.sentMs);
    resolve(status);
  }
}

class Collected implements LoadResult {
  requests = 0;
  /** Answers whose first byte is here. */
  begun = 0;
  errors = 0;
  chunks = 0;
  firstByteMs: number[] = [];
  totalMs: number[] = [];
  readonly failures: Record<string, number> = {};

  /** What was answered so far is not timed; its errors stay. */
  forgetTimes(): void {
    this.firstByteMs = [];
    this.totalMs = [];
  }

  note(status: number, firstByteMs: number, totalMs: number): void {
    this.requests += 1;
    if (status === 200) {
      this.firstByteMs.push(firstByteMs);
      this.totalMs.push(totalMs);
      return;
    }
    this.errors += 1;
    this.failures[status] = (this.failures[status] ?? 0) + 1;
  }
}

/**
 * `concurrency` connections, each with its next request as soon as the last one is answered. `leadIn` requests go ahead of those that are
 * counted, over the same connections and without a pause; errors among them count as well. `onLedIn` is called between the two.
 */
export async function closedLoop(target: Target, request: LoadRequest, load: { readonly requests: number; readonly concurrency: number; readonly leadIn?: number; readonly onLedIn?: () => void }): Promise<LoadResult> {
  const result = new Collected();
  const bytes = renderRequest(target, request);
  const { leadIn = 0 } = load;
  let left = load.requests + leadIn;
  let isLedIn = false;
  await Promise.all(Array.from({ length: load.concurrency }, async () => {
    const connection = new Connection(target.port, result);
    while (left > 0) {
      left -= 1;
      await connection.send(bytes);
      if (result.requests !== leadIn || leadIn === 0 || isLedIn) continue;
      isLedIn = true;
      result.forgetTimes();
      load.onLedIn?.();
    }
    connection.close();
  }));
  return result;
}

/** So many requests a second whatever the answers do, for so long, over connections that are kept. */
export async function openLoop(target: Target, request: LoadRequest, load: { readonly perSecond: number; readonly seconds: number; readonly seed?: number }): Promise<LoadResult> {
  const result = new Collected();
  const bytes = renderRequest(target, request);
  const idle: Connection[] = [];
  const all = new Set<Connection>();
  const answers: Promise<unknown>[] = [];
  const arrivals = new Arrivals(load.perSecond, load.seed ?? 1);
  const total = Math.round(load.perSecond * load.seconds);
  for (let sent = 0; sent < total;) {
    for (let due = Math.min(arrivals.take(), total - sent); due > 0; due -= 1, sent += 1) {
      const connection = idle.pop() ?? new Connection(target.port, result);
      all.add(connection);
      answers.push(connection.send(bytes).then(() => idle.push(connection)));
    }
    await arrivals.next(() => result.requests === sent);
  }
  await Promise.all(answers);
  for (const connection of all) connection.close();
  return result;
}

/** `count` streams at once, opened over about `openMs`; resolves when all are over. `onOpen` is called when all are open. */
export async function streams(target: Target, request: LoadRequest, load: { readonly count: number; readonly openMs: number; readonly onOpen?: () => void; readonly seed?: number }): Promise<LoadResult> {
  const result = new Collected();
  const bytes = renderRequest(target, request);
  const answers: Promise<unknown>[] = [];
  const arrivals = new Arrivals((load.count * 1_000) / load.openMs, load.seed ?? 1);
  for (let opened = 0; opened < load.count;) {
    for (let due = Math.min(arrivals.take(), load.count - opened); due > 0; due -= 1, opened += 1) {
      const connection = new Connection(target.port, result);
      answers.push(connection.send(bytes).then(() => connection.close()));
    }
    await arrivals.next(() => result.begun === opened);
  }
  load.onOpen?.();
  await Promise.all(answers);
  return result;
}
