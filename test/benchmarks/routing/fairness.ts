import { setImmediate as nextTurn } from 'node:timers/promises';
import { admitRequest, releaseLeases } from '@penstock/contract-commands';
import { endpointDeployedV1, replicaPlacedV1, type CatalogueEvent } from '@penstock/contract-events';
import { addressedTo, routerConfig, startRouter } from '@penstock/feature-router';
import { followProjection, silentLogger, type AggregateRef } from '@penstock/kernel';
import { FixedClock, LocalCommandClient, localCommandTransport, ManualTimers, MemoryEventLog, MemorySignals, SequentialIds } from '@penstock/testing-kit';
import { randomFrom } from '../random.js';

/** Two tenants want more than there is: the first has four times the weight of the second, and all its requests come in at the other router. */
const WEIGHTS = [4, 1] as const;
const ENDPOINTS = 4;
const SLOTS = 8;
/** Requests of each tenant at each endpoint that wait or are worked on, all the time. */
const AT_ONCE = 40;
const WARM_UP_MS = 2_000;
const MEASURED_MS = 60_000;
const STEP_MS = 20;

export interface FairnessResult {
  /** How far the first tenant's share of tokens is from its weight's, at the endpoint where it is farthest. */
  readonly worstError: number;
  readonly shares: readonly number[];
  readonly requests: number;
  /** Of the admissions, those that the router asked first handed to the other. */
  readonly forwardedShare: number;
}

/** Two routers as they run, with everything around them in memory and virtual time. */
export async function measureFairness(seed: number): Promise<FairnessResult> {
  const clock = new FixedClock();
  const timers = new ManualTimers(clock);
  const log = new MemoryEventLog();
  const commands = new LocalCommandClient();
  const signals = new MemorySignals();
  const ids = new SequentialIds();
  const endpointIds = Array.from({ length: ENDPOINTS }, (_, index) => `ep_${seed}_${index}`);
  for (const endpointId of endpointIds) await deploy(log, clock, endpointId);
  const start = () => startRouter(routerConfig.parse({ ROUTER_LEARNING_MS: '0', PORT: '0' }), {
    clock, timers, log, commands, signals, ids, logger: silentLogger, probe: { generate: () => Promise.resolve({ kind: 'answered', ms: 1, completionTokens: 1 }) }, follow: (projection) => followProjection(log, projection), commandTransport: localCommandTransport(commands),
  });
  const routers = [await start(), await start()];
  const instances = [...new Set(signals.published.flatMap(({ subject }) => (subject.startsWith('tele.router.') ? [subject.slice('tele.router.'.length)] : [])))];
  const served = endpointIds.map(() => WEIGHTS.map(() => 0));
  let [isOver, requests, asked] = [false, 0, 0];
  const next = randomFrom(seed);
  const startedMs = clock.now();
  const client = async (endpoint: number, tenant: number, number: number): Promise<void> => {
    const endpointId = endpointIds[endpoint] ?? '';
    const gate = addressedTo(admitRequest, instances[tenant] ?? '');
    for (let round = 0; !isOver; round += 1) {
      const tokens = 100 + Math.floor(3_000 * next() ** 3);
      asked += 1;
      const reply = await commands.send(gate, {
        requestId: `req_${endpoint}_${tenant}_${number}_${round}`, gatewayId: `gw_${tenant}`, organisationId: `org_${tenant}`, endpointId, modelName: 'model',
        promptTokensEstimate: tokens, answerTokensMax: 0, weight: WEIGHTS[tenant] ?? 1, waitMsMax: 600_000,
      });
      if (reply.kind !== 'ok') return;
      await new Promise<void>((resolve) => void timers.after(tokens / 4, resolve));
      if (clock.now() - startedMs >= WARM_UP_MS && !isOver) {
        const counts = served[endpoint];
        if (counts !== undefined) counts[tenant] = (counts[tenant] ?? 0) + tokens;
        requests += 1;
      }
      const { leaseId, replicaId } = reply.value;
      await commands.send(releaseLeases, { releases: [{ leaseId, replicaId, endpointId, outcome: 'ok' }] });
    }
  };
  const clients = endpointIds.flatMap((_, endpoint) => WEIGHTS.flatMap((__, tenant) => Array.from({ length: AT_ONCE }, (___, number) => client(endpoint, tenant, number).catch(() => undefined))));
  for (let passedMs = 0; passedMs < WARM_UP_MS + MEASURED_MS; passedMs += STEP_MS) {
    await timers.advance(STEP_MS);
    await nextTurn();
  }
  isOver = true;
  const admissions = commands.sent.filter(({ subject }) => subject.startsWith(admitRequest.subject)).length;
  const closing = Promise.all([...routers.map((router) => router.close()), ...clients]);
  let isClosed = false;
  void closing.then(() => (isClosed = true));
  while (!isClosed) {
    await timers.advance(STEP_MS);
    await nextTurn();
  }
  const shares = served.map(([first = 0, second = 0]) => first / (first + second));
  const due = WEIGHTS[0] / (WEIGHTS[0] + WEIGHTS[1]);
  return { worstError: Math.max(...shares.map((share) => Math.abs(share - due))), shares, requests, forwardedShare: (admissions - asked) / asked };
}

async function deploy(log: MemoryEventLog, clock: FixedClock, endpointId: string): Promise<void> {
  const append = (ref: AggregateRef, event: CatalogueEvent) => log.append({ ref, events: [event], expected: 'any', commandId: `cmd_${ref.id}_${event.type}`.replaceAll('.', '_'), correlationId: 'c', causationId: 'c', source: 'penstock/bench', nowMs: clock.now() });
  const replicaId = `rep_${endpointId}`;
  await append({ context: 'registry', aggregate: 'endpoint', id: endpointId }, { type: 'endpoint.deployed.v1', data: { ...endpointDeployedV1.example, endpointId, name: endpointId, serving: { slotsPerReplica: SLOTS, contextTokens: 8_192, queueMax: 1_000, queueWaitMsMax: 600_000 } } });
  const replica = { context: 'fleet', aggregate: 'replica', id: replicaId } as const;
  await append(replica, { type: 'replica.placed.v1', data: { ...replicaPlacedV1.example, replicaId, endpointId } });
  await append(replica, { type: 'replica.ready.v1', data: { replicaId, url: 'http://127.0.0.1:9', engine: 'engine-sim', servedModel: 'm', slots: SLOTS, contextTokens: 8_192, timings: { pullMs: 0, loadMs: 0, warmUpMs: 0 } } });
}
