import type { EngineRecord } from './engine-driver.js';

/** What an agent remembers over restarts. */
export interface AgentMemory {
  /** Stable for this machine's agent. */
  readonly nodeId: string;
  readonly engines: readonly EngineRecord[];
}

/** Keeps an agent's memory on its node, so that engines that outlive it are found again. */
export interface EngineRecords {
  /** Undefined at the very first start. */
  load(): Promise<AgentMemory | undefined>;
  /** Durable when it resolves; a crash in between leaves the old memory. */
  save(memory: AgentMemory): Promise<void>;
}
