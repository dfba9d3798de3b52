import type { EngineRecord, EngineRecords } from '@penstock/domain-serving';
import type { IdSource } from '@penstock/kernel';

/** The node's id and the engines that run, kept on disk over crashes. */
export class NodeMemory {
  private constructor(private readonly store: EngineRecords, readonly nodeId: string, private readonly engines: Map<string, EngineRecord>) {}

  /** At the very first start the node gets an id, which it keeps. */
  static async open(store: EngineRecords, ids: IdSource): Promise<NodeMemory> {
    const loaded = await store.load();
    const memory = new NodeMemory(store, loaded?.nodeId ?? ids.next('node'), new Map(loaded?.engines.map((record) => [record.replicaId, record])));
    if (loaded === undefined) await memory.save();
    return memory;
  }

  records(): readonly EngineRecord[] {
    return [...this.engines.values()];
  }

  async remember(record: EngineRecord): Promise<void> {
    this.engines.set(record.replicaId, record);
    await this.save();
  }

  async forget(replicaId: string): Promise<void> {
    if (this.engines.delete(replicaId)) await this.save();
  }

  private save(): Promise<void> {
    return this.store.save({ nodeId: this.nodeId, engines: this.records() });
  }
}
