import type { EngineKind } from '@penstock/contract-events';

/** Settings of an engine's start. Paths are absolute paths on the node. */
export interface EngineStartSpec {
  readonly replicaId: string;
  /** The name that the engine is to know the model by. */
  readonly modelName: string;
  /** A weights file, or a folder of them; null where nothing is pulled. */
  readonly modelPath: string | null;
  /** Requests worked on at once. */
  readonly slots: number;
  /** Tokens of prompt and answer together, for each slot. */
  readonly contextTokens: number;
  /** `engineOptions` of the endpoint, as they came; a driver refuses what it does not know. */
  readonly options: Readonly<Record<string, string | number | boolean>>;
  /** Names of LoRA adapters that requests may ask for, where the engine is to have any. */
  readonly adapters?: readonly string[] | undefined;
  /** Device index or UUID; null for a CPU. */
  readonly device: string | null;
  /** Where the engine runs already; null for an engine that is started here. */
  readonly attachedUrl: string | null;
  /** The engine's output is appended to it. */
  readonly logFile: string;
  /** A folder for the files of this replica, such as the truth ledger of the simulated engine. */
  readonly stateDir: string;
  /** Called as soon as the process exists, long before it is ready: whoever crashes from here on must be able to find it. */
  readonly onSpawned?: ((record: EngineRecord) => Promise<void>) | undefined;
  /** Gives up the start; whatever was started is ended. */
  readonly signal?: AbortSignal | undefined;
}

/** What must be kept on disk to find a running engine again. A JSON value. */
export interface EngineRecord {
  readonly replicaId: string;
  readonly kind: EngineKind;
  readonly url: string;
  readonly servedModel: string;
  /** Null for an attached engine. */
  readonly pid: number | null;
  /** Names the process beyond its number, so that another process with the same number is not taken for it. */
  readonly processIdentity: string | null;
  readonly logFile: string;
}

export interface EngineExit {
  /** For people: exit code or signal, and the last lines that the engine printed. */
  readonly reason: string;
}

/** A running engine. */
export interface EngineProcess {
  readonly record: EngineRecord;
  readonly url: string;
  readonly pid: number | null;
  /** The name that requests to the engine carry as `model`. */
  readonly servedModel: string;
  /** Settles when the process is gone; never for an attached engine. */
  readonly exited: Promise<EngineExit>;
  /** Asks it to end, kills it after `graceMs`, and resolves once it is gone. An attached engine is left alone. */
  stop(graceMs: number): Promise<void>;
  /** Ends it at once. Resolves once it is gone. */
  kill(): Promise<void>;
}

/** One kind of engine on this node. */
export interface EngineDriver {
  readonly kind: EngineKind;
  /** The version that a start would use; undefined when this node cannot run the engine. */
  detect(): Promise<{ readonly version: string } | undefined>;
  /** Resolves once the engine accepts requests (weights loaded). Throws {@link EngineStartError}. */
  start(spec: EngineStartSpec): Promise<EngineProcess>;
  /** Takes over an engine that an earlier agent started; undefined when that process is gone or answers no more. */
  adopt(record: EngineRecord): Promise<EngineProcess | undefined>;
}

export type EngineStartCode = 'engine_missing' | 'engine_exited' | 'start_timeout' | 'unreachable';

/** The engine could not be started. The message has its last output lines where it printed any. */
export class EngineStartError extends Error {
  override readonly name = 'EngineStartError';
  constructor(readonly code: EngineStartCode, message: string, options?: ErrorOptions) {
    super(message, options);
  }
}
