import type { EngineModel } from '@penstock/domain-engine-model';
import { admit, createAdmissionState, NEWS_INTERVAL_MS, noStartTrouble, PromptExchange, PromptNews, release, RoutingMemory, syncReplicas, type AdmissionState, type PromptTrail, type ReplicaPace } from '@penstock/domain-routing';
import type { TraceRouter } from '@penstock/testing-simulator';
import { FixedClock, ManualTimers, MemorySignals } from '@penstock/testing-kit';
import { randomFrom } from '../random.js';
import { BLOCK_TOKENS, type RoutedRequest } from './trace-requests.js';

export type PolicyName = 'ours' | 'round-robin' | 'random' | 'least-loaded' | 'oracle' | 'ours, four gateways' | 'ours, four silent gateways';
export type Router = TraceRouter<RoutedRequest>;

export interface PolicyOptions {
  readonly replicas: number;
  readonly slots: number;
  readonly pace: ReplicaPace;
  readonly seed: number;
}

const GATEWAYS = 4;

const blockTokensIn = (count: number): number => count * BLOCK_TOKENS;

export function policyOf(name: PolicyName, options: PolicyOptions): Router {
  switch (name) {
    case 'ours': return new AdmissionRouter(options, new RoutingMemory(options.pace, blockTokensIn));
    case 'ours, four gateways': return severalGateways(options, GATEWAYS, true);
    case 'ours, four silent gateways': return severalGateways(options, GATEWAYS, false);
    case 'oracle': return oracle(options);
    case 'round-robin': return roundRobin(options);
    case 'random': {
      const next = randomFrom(options.seed);
      return { choose: () => Math.floor(next() * options.replicas) };
    }
    case 'least-loaded': return new LeastLoaded(options);
  }
}

function roundRobin({ replicas }: PolicyOptions): Router {
  let turn = 0;
  return { choose: () => (turn += 1) % replicas };
}

/** The load is far beyond what the fleet can do. */
export class AllSlotsTaken extends Error {
  override readonly name = 'AllSlotsTaken';
}

/** The router's own admission of one endpoint, with everything that it learns. */
class AdmissionRouter implements Router {
  private readonly state: AdmissionState;
  private readonly leases = new Map<string, string>();

  constructor({ replicas, slots }: PolicyOptions, memory: RoutingMemory) {
    this.state = createAdmissionState({ endpointId: 'ep_1', queueMax: 100_000, queueWaitMsMax: 1e12, leaseTtlMs: 1e12 }, 0, memory);
    const ready = Array.from({ length: replicas }, (_, index) => ({ replicaId: String(index), modelVersionId: 'mv_1', url: '', engine: 'engine-sim' as const, servedModel: 'm', slots }));
    syncReplicas(this.state, { ready, draining: [], trouble: noStartTrouble }, 0);
  }

  choose({ id, promptTokens, outputTokens, prompt }: RoutedRequest, nowMs: number): number {
    const effects = admit(this.state, { requestId: id, leaseId: id, gatewayId: 'gw_1', organisationId: 'org_1', excludedReplicaIds: [], waitMsMax: 1e9, workTokens: promptTokens + outputTokens, prompt }, nowMs);
    const [effect] = effects;
    if (effect?.kind !== 'grant') throw new AllSlotsTaken();
    this.leases.set(id, effect.lease.leaseId);
    return Number(effect.lease.replicaId);
  }

  ended({ id }: RoutedRequest, _engine: number, nowMs: number): void {
    release(this.state, [{ leaseId: this.leases.get(id) ?? '', outcome: 'ok' }], nowMs);
    this.leases.delete(id);
  }
}

/** Requests come in anywhere, and each gateway knows those that came to it and, a moment later, what the others tell. */
function severalGateways(options: PolicyOptions, count: number, doTell: boolean): Router {
  const next = randomFrom(options.seed);
  const clock = new FixedClock(0);
  const signals = new MemorySignals();
  const exchanges: PromptExchange[] = [];
  const gateways = Array.from({ length: count }, (_, index) => {
    const news = new PromptNews();
    const memory = new RoutingMemory(options.pace, blockTokensIn, (replicaId, tokens, blocks) => news.note('ep_1', replicaId, tokens, blocks));
    exchanges.push(new PromptExchange(`gw_${index}`, news, () => memory, { signals, clock, timers: new ManualTimers(clock) }));
    return new AdmissionRouter(options, memory);
  });
  for (const exchange of exchanges) if (doTell) void exchange.start();
  let tellAtMs = 0;
  const gatewayOf = new Map<string, AdmissionRouter>();
  return {
    choose: (request, nowMs) => {
      clock.advance(nowMs - clock.now());
      for (; tellAtMs <= nowMs; tellAtMs += NEWS_INTERVAL_MS) for (const exchange of exchanges) exchange.tell();
      signals.published.length = 0;
      const gateway = gateways[Math.floor(next() * count)];
      if (gateway === undefined) throw new Error('there is a gateway for every number drawn');
      gatewayOf.set(request.id, gateway);
      return gateway.choose(request, nowMs);
    },
    ended: (request, engine, nowMs) => gatewayOf.get(request.id)?.ended(request, engine, nowMs),
  };
}

/** Takes what a replica has cached from the replica itself, at the moment of the choice. */
class ExactMemory extends RoutingMemory {
  request: RoutedRequest | undefined;
  engines: readonly EngineModel[] = [];

  override hitTokens(replicaId: string, _prompt: PromptTrail): number {
    return this.request === undefined ? 0 : (this.engines[Number(replicaId)]?.cachedTokens(this.request) ?? 0);
  }
}

/** The same policy with exact knowledge of every cache. */
function oracle(options: PolicyOptions): Router {
  const memory = new ExactMemory(options.pace, blockTokensIn);
  const router = new AdmissionRouter(options, memory);
  return {
    choose: (request, nowMs, engines) => {
      memory.request = request;
      memory.engines = engines;
      return router.choose(request, nowMs);
    },
    ended: (request, engine, nowMs) => router.ended(request, engine, nowMs),
  };
}

/** Fewest requests in flight; equal ones in turn. */
class LeastLoaded implements Router {
  private readonly inFlight: number[];
  private turn = 0;

  constructor({ replicas }: PolicyOptions) {
    this.inFlight = Array<number>(replicas).fill(0);
  }

  choose(): number {
    const count = this.inFlight.length;
    this.turn += 1;
    let best = this.turn % count;
    for (let offset = 1; offset < count; offset += 1) {
      const index = (this.turn + offset) % count;
      if ((this.inFlight[index] ?? 0) < (this.inFlight[best] ?? 0)) best = index;
    }
    this.inFlight[best] = (this.inFlight[best] ?? 0) + 1;
    return best;
  }

  ended(_request: RoutedRequest, engine: number): void {
    this.inFlight[engine] = (this.inFlight[engine] ?? 1) - 1;
  }
}
