import { pathToFileURL } from 'node:url';

/** The part of `onnxruntime-node` that the engine uses. It is no dependency of the workspace: its path is given at the start. */
export interface OnnxRuntime {
  readonly InferenceSession: { create(path: string, options: SessionOptions): Promise<OnnxSession> };
  readonly Tensor: new (type: string, data: OnnxData, shape: readonly number[]) => OnnxTensor;
}

export interface SessionOptions {
  readonly intraOpNumThreads: number;
  readonly interOpNumThreads: number;
  readonly executionProviders: readonly string[];
  /** 3 logs errors only. */
  readonly logSeverityLevel: number;
}

export type OnnxData = ArrayBufferView | readonly string[];

export interface OnnxTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: OnnxData;
}

export interface OnnxValueMetadata {
  readonly name: string;
  readonly isTensor: boolean;
  readonly type?: string;
  /** A name where the length is open. */
  readonly shape?: readonly (number | string)[];
}

export interface OnnxSession {
  readonly inputMetadata: readonly OnnxValueMetadata[];
  readonly outputMetadata: readonly OnnxValueMetadata[];
  run(feeds: Readonly<Record<string, OnnxTensor>>, fetches: readonly string[]): Promise<Readonly<Record<string, OnnxTensor>>>;
  release(): Promise<void>;
}

/** Loads the package from the path of its main module. Throws when it is not there or not fit for this machine. */
export async function loadOnnxRuntime(path: string): Promise<OnnxRuntime> {
  // The runtime's native part reads halves from their bits only, and its JavaScript part would wrap them in this type where there is one.
  Reflect.deleteProperty(globalThis, 'Float16Array');
  const loaded = (await import(pathToFileURL(path).href)) as { default?: unknown };
  const runtime = (loaded.default ?? loaded) as Partial<OnnxRuntime>;
  if (runtime.InferenceSession === undefined || runtime.Tensor === undefined) throw new Error(`${path} is not the main module of onnxruntime-node`);
  return runtime as OnnxRuntime;
}
