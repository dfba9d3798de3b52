import type { PromptNewsMessage } from '@penstock/contract-commands';

/** Keys of blocks in one message; prompts beyond them are not told. Twenty bytes each as JSON, far below what a message may hold. */
export const NEWS_KEYS_MAX = 8_000;
/** Prompts and replicas in one message, beside the keys. */
export const NEWS_PROMPTS_MAX = 2_000;
export const NEWS_REPLICAS_MAX = 2_000;

interface ReplicaNews {
  tokens: number;
  readonly prompts: (readonly number[])[];
}

/** What one process decided since it told the others last: which prompts it sent where, and how much there is to compute of them. */
export class PromptNews {
  private byEndpoint = new Map<string, Map<string, ReplicaNews>>();
  private keys = 0;
  private prompts = 0;
  private replicas = 0;

  note(endpointId: string, replicaId: string, tokens: number, blocks: readonly number[]): void {
    const news = this.newsOf(endpointId, replicaId);
    if (news === undefined) return;
    news.tokens += tokens;
    if (blocks.length === 0 || this.keys + blocks.length > NEWS_KEYS_MAX || this.prompts >= NEWS_PROMPTS_MAX) return;
    news.prompts.push(blocks);
    this.keys += blocks.length;
    this.prompts += 1;
  }

  /** Everything that was noted, once; undefined when there is nothing. */
  take(tellerId: string): PromptNewsMessage | undefined {
    if (this.replicas === 0) return undefined;
    const endpoints = [...this.byEndpoint].map(([endpointId, replicas]) => ({
      endpointId, replicas: [...replicas].map(([replicaId, { tokens, prompts }]) => ({ replicaId, tokens: Math.round(tokens), prompts: prompts.map((keys) => [...keys]) })),
    }));
    this.byEndpoint = new Map();
    [this.keys, this.prompts, this.replicas] = [0, 0, 0];
    return { tellerId, endpoints };
  }

  private newsOf(endpointId: string, replicaId: string): ReplicaNews | undefined {
    let endpoint = this.byEndpoint.get(endpointId);
    let news = endpoint?.get(replicaId);
    if (news !== undefined) return news;
    if (this.replicas >= NEWS_REPLICAS_MAX) return undefined;
    if (endpoint === undefined) this.byEndpoint.set(endpointId, (endpoint = new Map()));
    endpoint.set(replicaId, (news = { tokens: 0, prompts: [] }));
    this.replicas += 1;
    return news;
  }
}
