import { PromptNews } from './prompt-news.js';
import { textTokensIn } from './prompt-trail.js';
import { RoutingMemory, type ReplicaPace } from './routing-memory.js';

/** Blocks that one process remembers, over all endpoints: about a hundred bytes each. */
export const BLOCKS_MAX = 1_000_000;
/** So many lookups pass between two counts of the blocks. */
const COUNT_EVERY = 1_024;

/** The memories of all endpoints of one process, within a bound on all of them together. */
export class RoutingMemories {
  /** The endpoint asked for longest ago first. */
  private readonly byEndpoint = new Map<string, RoutingMemory>();
  private lookups = 0;
  /** What was learned by sending, for the others. */
  readonly news = new PromptNews();

  constructor(private readonly paceOf: (endpointId: string) => ReplicaPace, private readonly blocksMax = BLOCKS_MAX) {}

  of(endpointId: string): RoutingMemory {
    const known = this.byEndpoint.get(endpointId);
    const memory = known ?? new RoutingMemory(this.paceOf(endpointId), textTokensIn, (replicaId, tokens, blocks) => this.news.note(endpointId, replicaId, tokens, blocks));
    this.lookups += 1;
    if (known === undefined || this.lookups % COUNT_EVERY === 0) this.bound(endpointId, memory);
    return memory;
  }

  /** The memory of an endpoint that has one. */
  find(endpointId: string): RoutingMemory | undefined {
    return this.byEndpoint.get(endpointId);
  }

  /** Forgets replicas that serve no more. */
  keepOnly(isServing: (replicaId: string) => boolean): void {
    for (const memory of this.byEndpoint.values()) memory.keepOnly(isServing);
  }

  forget(endpointId: string): void {
    this.byEndpoint.delete(endpointId);
  }

  /** Empties the memories of the endpoints that were called longest ago while there are too many blocks. */
  private bound(endpointId: string, memory: RoutingMemory): void {
    memory.setPace(this.paceOf(endpointId));
    this.byEndpoint.delete(endpointId);
    this.byEndpoint.set(endpointId, memory);
    let blocks = 0;
    for (const other of this.byEndpoint.values()) blocks += other.blocks;
    for (const [id, other] of this.byEndpoint) {
      if (blocks <= this.blocksMax) return;
      blocks -= other.blocks;
      other.clear();
      if (id !== endpointId) this.byEndpoint.delete(id);
    }
  }
}
