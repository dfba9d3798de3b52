import { isTensorEngine, type EngineKind, type TensorEngineKind } from '@penstock/contract-events';
import type { ErrorCode } from '@penstock/contract-http';
import { llamaCppDialect } from './engine-dialect-llama-cpp.js';
import { vllmDialect } from './engine-dialect-vllm.js';
import type { UsageReading } from './engine-usage.js';

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** What the gateway knows of a request when it speaks to an engine. */
export interface DialectRequest {
  readonly stream: boolean;
  /** Partitions the engine's prefix cache between tenants, where the engine can. At most 128 characters of `A-Z a-z 0-9 _ -`. */
  readonly cacheSalt?: string | undefined;
}

/** A failure that an engine reported, in the platform's words. */
export interface EngineFault {
  readonly code: ErrorCode;
  /** Safe to show to the caller: names no host, path or class of the engine. */
  readonly message: string;
  readonly param: string | null;
  /** True when another replica may answer the same request. */
  readonly retryElsewhere: boolean;
}

/** How one kind of engine differs on the wire. Pure data and functions; bodies are parsed JSON of unknown shape. */
export interface EngineDialect {
  readonly kind: EngineKind;
  /** Top-level fields to set, over whatever the client sent, so that usage is reported with every chunk and tenants stay apart. */
  fieldsToSet(request: DialectRequest): Readonly<Record<string, JsonValue>>;
  /** Top-level fields that steer the engine and never come from a tenant. */
  readonly fieldsToStrip: readonly string[];
  /**
   * Usage inside one streamed chunk or one whole answer; undefined where it has none. Readings are cumulative: feed each
   * to `addUsage` and never add them up by hand.
   */
  readUsage(body: unknown): UsageReading | undefined;
  /** False when an unstreamed answer with `n` choices reports only one of them: ask for a stream then, and join it. */
  reportsUsageUnstreamed(choices: number): boolean;
  /** The error inside a body or chunk (also under status 200); undefined when it holds none. `status` is 200 for a chunk. */
  readFault(status: number, body: unknown): EngineFault | undefined;
  /** The engine closes an idle connection after this long: a pool must let go of it sooner. */
  readonly keepAliveMs: number;
  /** Requests that one connection carries before the engine closes it; null for no limit. */
  readonly requestsPerConnectionMax: number | null;
}

const dialects: Readonly<Record<Exclude<EngineKind, TensorEngineKind>, EngineDialect>> = {
  vllm: vllmDialect('vllm'),
  'engine-sim': vllmDialect('engine-sim'),
  'llama.cpp': llamaCppDialect,
};

/** Throws for an engine of tensors, which answers no chat: who asks has looked at the endpoint. */
export function dialectOf(kind: EngineKind): EngineDialect {
  if (isTensorEngine(kind)) throw new Error(`The engine ${kind} takes tensors and has no dialect of chat.`);
  return dialects[kind];
}
