/** What runs when a replica of the simulated fleet serves. */
export interface EngineWish {
  readonly replicaId: string;
  readonly modelName: string;
  readonly slots: number;
  readonly contextTokens: number;
  /** The name of a timing profile of the engine model, such as `h100-llama-3.1-8b`. */
  readonly timingModel: string;
  /** What the profile's durations are multiplied with: the same factor as for everything else of the fleet. */
  readonly timeScale: number;
}

export interface HostedEngine {
  readonly url: string;
  /** Ends it. `isCrash` cuts what is in flight; otherwise it may finish. */
  close(isCrash: boolean): Promise<void>;
}

/** Runs engines for replicas: in virtual time, or in real time behind HTTP. Whoever implements it says how many it can take. */
export interface EngineHost {
  /** Throws when no further engine can run. */
  open(wish: EngineWish): Promise<HostedEngine>;
  close(): Promise<void>;
}
