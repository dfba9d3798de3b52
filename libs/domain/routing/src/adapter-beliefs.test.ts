import { describe, expect, test } from '@jest/globals';
import { MemorySignals } from '@penstock/testing-kit';
import fc from 'fast-check';
import { AdapterBeliefs } from './adapter-beliefs.js';
import { hearAdapters } from './adapter-reports.js';
import { createAdmissionState, noStartTrouble, type AdmissionRequest, type AdmissionState, type ServingReplica } from './admission-state.js';
import { admit } from './admit.js';
import { expire } from './expire.js';
import { release } from './leases.js';
import { EXCLUDED_WAIT_MS_MAX } from './overdue.js';
import { pickReplica, type ReplicaCandidate } from './pick-replica.js';
import { syncReplicas } from './sync-replicas.js';

const report = (replicaId: string, served: string[] | null, active: string[] = [], slots: number | null = 1) => ({ replicaId, endpointId: 'ep_1', sentAtMs: 0, served, active, slots });
const candidate = (replicaId: string, inFlight = 0): ReplicaCandidate => ({ replicaId, inFlight, slots: 4, isHealthy: true });
const replica = (replicaId: string, slots = 1): ServingReplica => ({ replicaId, modelVersionId: 'mv_1', url: 'http://127.0.0.1:1', engine: 'vllm', servedModel: 'm', slots });
const request = (name: string, adapter?: string): AdmissionRequest => ({ requestId: `req_${name}`, leaseId: `lease_${name}`, gatewayId: 'inst_g', organisationId: 'org_1', excludedReplicaIds: [], waitMsMax: 60_000, adapter });

function pick(adapters: AdapterBeliefs, adapter: string, candidates: readonly ReplicaCandidate[] = [candidate('a'), candidate('b')]): string | undefined {
  return pickReplica(candidates, { excludedReplicaIds: [], rotation: 0, adapter, adapters })?.replicaId;
}

describe('what is believed of adapters', () => {
  test('a replica that has the adapter on its accelerator draws requests for it, until it is too busy', () => {
    const beliefs = new AdapterBeliefs();
    beliefs.hear(report('b', ['french', 'german'], ['french']));
    expect(pick(beliefs, 'french')).toBe('b');
    expect(pick(beliefs, 'french', [candidate('a'), candidate('b', 3)])).toBe('a');
  });

  test('an adapter is not brought where it pushes another one out, while there is a free place elsewhere', () => {
    const beliefs = new AdapterBeliefs();
    beliefs.hear(report('a', ['french', 'german'], ['french']));
    beliefs.hear(report('b', ['french', 'german'], ['french'], 2));
    expect(pick(beliefs, 'german')).toBe('b');
  });

  test('a replica whose engine does not serve the adapter is out, one that did not say yet is not', () => {
    const beliefs = new AdapterBeliefs();
    beliefs.hear(report('a', ['german']));
    expect(pick(beliefs, 'french')).toBe('b');
    beliefs.hear(report('b', []));
    expect(pick(beliefs, 'french')).toBeUndefined();
    beliefs.hear(report('b', ['french']));
    beliefs.hear(report('b', null, ['french']));
    expect(beliefs.mayServe('b', 'german')).toBe(false);
    beliefs.keepOnly((replicaId) => replicaId !== 'b');
    expect(beliefs.mayServe('b', 'german')).toBe(true);
    expect(beliefs.isResident('b', 'french')).toBe(false);
  });

  test('what was sent counts before the engine says so, and the adapter used longest ago makes room', () => {
    const beliefs = new AdapterBeliefs();
    beliefs.hear(report('a', ['x', 'y', 'z'], [], 2));
    for (const adapter of ['x', 'y', 'x', 'z']) beliefs.note('a', adapter);
    expect(['x', 'y', 'z'].map((adapter) => beliefs.isResident('a', adapter))).toEqual([true, false, true]);
    expect(beliefs.isFull('a')).toBe(true);
  });

  test('property: never more resident than there are slots, the last used always is, and what is not served never', () => {
    const adapter = fc.constantFrom('u', 'v', 'w', 'x');
    const step = fc.oneof(
      fc.record({ kind: fc.constant('note' as const), adapter }),
      fc.record({ kind: fc.constant('hear' as const), active: fc.uniqueArray(adapter, { maxLength: 4 }), served: fc.option(fc.uniqueArray(adapter, { maxLength: 4 })), slots: fc.option(fc.integer({ min: 1, max: 3 })) }),
    );
    fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const beliefs = new AdapterBeliefs();
      let [slots, served]: [number, readonly string[] | null] = [1, null];
      for (const each of steps) {
        if (each.kind === 'note') beliefs.note('a', each.adapter);
        else beliefs.hear({ replicaId: 'a', ...each });
        if (each.kind === 'hear') [slots, served] = [each.slots ?? slots, each.served ?? served];
        const resident = ['u', 'v', 'w', 'x'].filter((name) => beliefs.isResident('a', name));
        expect(resident.length).toBeLessThanOrEqual(slots);
        for (const name of resident) expect(beliefs.mayServe('a', name)).toBe(true);
        const last = each.kind === 'note' ? each.adapter : each.active.filter((name) => served?.includes(name) !== false).at(-1);
        if (last !== undefined && beliefs.mayServe('a', last)) expect(resident).toContain(last);
      }
    }));
  });

  test('comes in live messages; one that is none is passed over', async () => {
    const [signals, beliefs] = [new MemorySignals(), new AdapterBeliefs()];
    const subscription = await hearAdapters(signals, beliefs);
    signals.publish('tele.adapters.a', { ...report('a', ['x']), slots: -1 });
    expect(beliefs.mayServe('a', 'y')).toBe(true);
    signals.publish('tele.adapters.a', report('a', ['x'], ['x']));
    expect([beliefs.mayServe('a', 'y'), beliefs.isResident('a', 'x')]).toEqual([false, true]);
    await subscription.close();
  });
});

describe('admission with adapters', () => {
  function stateWith(...ready: readonly ServingReplica[]): { readonly state: AdmissionState; readonly beliefs: AdapterBeliefs } {
    const beliefs = new AdapterBeliefs();
    const state = createAdmissionState({ endpointId: 'ep_1', queueMax: 10, queueWaitMsMax: 30_000, leaseTtlMs: 20_000 }, 0, undefined, beliefs);
    syncReplicas(state, { ready, draining: [], trouble: noStartTrouble }, 0);
    return { state, beliefs };
  }
  const grants = (effects: ReturnType<typeof admit>): string[] => effects.map((effect) => (effect.kind === 'grant' ? `${effect.requestId} ${effect.lease.replicaId}` : effect.kind));

  test('requests of one adapter stay at one replica while it has room', () => {
    const { state, beliefs } = stateWith(replica('a', 4), replica('b', 4));
    for (const replicaId of ['a', 'b']) beliefs.hear(report(replicaId, ['x', 'y']));
    const places = new Map<string, Set<string>>([['x', new Set()], ['y', new Set()]]);
    for (let turn = 0; turn < 20; turn += 1) {
      const adapter = turn % 2 === 0 ? 'x' : 'y';
      const [effect] = admit(state, request(`${turn}`, adapter), turn);
      if (effect?.kind === 'grant') places.get(adapter)?.add(effect.lease.replicaId);
      release(state, [{ leaseId: `lease_${turn}`, outcome: 'ok' }], turn);
    }
    expect([...(places.get('x') ?? []), ...(places.get('y') ?? [])].sort()).toEqual(['a', 'b']);
  });

  test('one that waits for the replica with its adapter holds up nobody behind it', () => {
    const { state, beliefs } = stateWith(replica('a'), replica('b'));
    beliefs.hear(report('a', ['x']));
    beliefs.hear(report('b', []));
    expect(grants(admit(state, request('1', 'x'), 0))).toEqual(['req_1 a']);
    expect(grants(admit(state, request('2', 'x'), 0))).toEqual([]);
    expect(grants(admit(state, request('3'), 0))).toEqual(['req_3 b']);
    expect(grants(admit(state, request('4'), 0))).toEqual([]);
    expect(grants(release(state, [{ leaseId: 'lease_3', outcome: 'ok' }], 1).effects)).toEqual(['req_4 b']);
    expect(grants(release(state, [{ leaseId: 'lease_1', outcome: 'ok' }], 2).effects)).toEqual(['req_2 a']);
  });

  test('property: nothing is granted where it is not served, and nobody waits who could be served', () => {
    const served = fc.option(fc.subarray(['x', 'y']));
    const step = fc.oneof(fc.record({ adapter: fc.option(fc.constantFrom('x', 'y'), { nil: undefined }) }), fc.record({ ends: fc.nat(30) }));
    fc.assert(fc.property(fc.tuple(served, served, served), fc.array(step, { maxLength: 40 }), (engines, steps) => {
      const names = ['a', 'b', 'c'];
      const { state, beliefs } = stateWith(...names.map((name) => replica(name)));
      for (const [index, own] of engines.entries()) if (own !== null) beliefs.hear(report(names[index] ?? '', own));
      const serves = (replicaId: string, adapter: string | undefined): boolean => adapter === undefined || (engines[names.indexOf(replicaId)] ?? ['x', 'y']).includes(adapter);
      const adapterOf = new Map<string, string | undefined>();
      for (const [turn, each] of steps.entries()) {
        if ('adapter' in each) adapterOf.set(`req_${turn}`, each.adapter);
        const effects = 'adapter' in each ? admit(state, request(`${turn}`, each.adapter), turn) : release(state, [{ leaseId: `lease_${each.ends}`, outcome: 'ok' }], turn).effects;
        for (const effect of effects) if (effect.kind === 'grant') expect(serves(effect.lease.replicaId, adapterOf.get(effect.requestId))).toBe(true);
        const free = state.serving.filter(({ inFlight, slots }) => inFlight < slots);
        for (const waiter of state.waiting.values()) expect(free.some(({ replicaId }) => serves(replicaId, waiter.adapter))).toBe(false);
      }
    }));
  });

  test('one that every replica with its adapter failed does not wait for the others', () => {
    const { state, beliefs } = stateWith(replica('a'), replica('b'));
    beliefs.hear(report('a', ['x']));
    beliefs.hear(report('b', []));
    expect(admit(state, { ...request('1', 'x'), excludedReplicaIds: ['a'] }, 0)).toEqual([]);
    expect(expire(state, EXCLUDED_WAIT_MS_MAX).effects).toMatchObject([{ kind: 'refuse', refusal: { code: 'replica_failed' } }]);
  });

  test('one that no replica serves is refused at once, unless another replica is on its way', () => {
    const { state, beliefs } = stateWith(replica('a'));
    beliefs.hear(report('a', ['x']));
    expect(admit(state, request('1', 'y'), 0)).toMatchObject([{ kind: 'refuse', refusal: { code: 'model_loading', message: expect.stringContaining('serves the adapter y') } }]);
    syncReplicas(state, { ready: [replica('a')], draining: [], trouble: { ...noStartTrouble, isStarting: true } }, 0);
    expect(admit(state, request('2', 'y'), 0)).toEqual([]);
    expect(grants(syncReplicas(state, { ready: [replica('a'), replica('b')], draining: [], trouble: noStartTrouble }, 1))).toEqual(['req_2 b']);
  });
});
