import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { AdmissionEffect } from './admission-effect.js';
import { createAdmissionState, noStartTrouble, type AdmissionState, type ServingReplica } from './admission-state.js';
import { admit, cancel } from './admit.js';
import { circuitAllows, openCircuitsMax } from './circuit.js';
import { expire } from './expire.js';
import { release } from './leases.js';
import { syncReplicas } from './sync-replicas.js';

const REPLICAS = ['a', 'b', 'c'];
const SLOTS = 2;
const QUEUE_MAX = 5;

type Fate = 'waiting' | 'granted' | 'refused' | 'cancelled';

/** What an outside observer saw: the fate of each admission, in the order of the effects. */
interface Model {
  nowMs: number;
  admissions: number;
  readonly fates: Map<string, Fate>;
  /** Admissions without exclusions that wait, oldest first, with their tenant. */
  queued: { readonly leaseId: string; readonly tenant: string }[];
}

class Real {
  readonly state: AdmissionState = createAdmissionState({ endpointId: 'ep_1', queueMax: QUEUE_MAX, queueWaitMsMax: 3_000, leaseTtlMs: 4_000 }, 0);
}

const facts = (replicaId: string): ServingReplica => ({ replicaId, modelVersionId: 'mv_1', url: 'http://127.0.0.1:1', engine: 'engine-sim', servedModel: 'm', slots: SLOTS });

function observe(model: Model, effects: readonly AdmissionEffect[]): void {
  for (const effect of effects) {
    if (effect.kind !== 'grant' && effect.kind !== 'refuse') continue;
    // Each admission ends once.
    expect(model.fates.get(effect.leaseId)).toBe('waiting');
    model.fates.set(effect.leaseId, effect.kind === 'grant' ? 'granted' : 'refused');
    // Of a tenant's requests that take any replica, the oldest is granted first.
    const granted = model.queued.find((queued) => queued.leaseId === effect.leaseId);
    if (effect.kind === 'grant' && granted !== undefined) expect(model.queued.find((queued) => queued.tenant === granted.tenant)).toBe(granted);
    model.queued = model.queued.filter((queued) => queued !== granted);
  }
}

function check(model: Model, { state }: Real): void {
  const waiting = [...model.fates].filter(([, fate]) => fate === 'waiting').map(([leaseId]) => leaseId);
  expect([...state.waiting.values()].map((waiter) => waiter.leaseId).sort()).toEqual(waiting.sort());
  expect(state.waiting.size).toBeLessThanOrEqual(QUEUE_MAX);
  for (const leaseId of state.leases.keys()) expect(model.fates.get(leaseId)).toBe('granted');
  let out = 0;
  for (const replica of state.replicas.values()) {
    const held = [...state.leases.values()].filter((lease) => lease.lease.replicaId === replica.replicaId).length;
    expect(replica.inFlight).toBe(held);
    expect(held).toBeLessThanOrEqual(SLOTS);
    if (replica.circuit.phase !== 'closed') out += 1;
    // No slot stays free while somebody waits who could use it.
    const isFree = replica.isServing && held < SLOTS && circuitAllows(replica.circuit, model.nowMs);
    if (isFree) for (const waiter of state.waiting.values()) expect(waiter.excludedReplicaIds).toContain(replica.replicaId);
  }
  expect(out).toBeLessThanOrEqual(openCircuitsMax(state.serving.length));
  const byTenant = new Map<string, number>();
  for (const waiter of state.waiting.values()) byTenant.set(waiter.organisationId, (byTenant.get(waiter.organisationId) ?? 0) + 1);
  expect(state.waitingByTenant).toEqual(byTenant);
}

abstract class Step implements fc.Command<Model, Real> {
  check(): boolean {
    return true;
  }
  run(model: Model, real: Real): void {
    this.act(model, real);
    // A circuit may let a probe through from a certain time on: time passes between two steps.
    observe(model, expire(real.state, model.nowMs).effects);
    check(model, real);
  }
  protected abstract act(model: Model, real: Real): void;
}

class Admit extends Step {
  constructor(private readonly tenant: string, private readonly excluded: string[], private readonly waitMsMax: number) {
    super();
  }
  protected override act(model: Model, { state }: Real): void {
    const name = String((model.admissions += 1));
    const leaseId = `lease_${name}`;
    model.fates.set(leaseId, 'waiting');
    if (this.excluded.length === 0) model.queued.push({ leaseId, tenant: this.tenant });
    observe(model, admit(state, { requestId: `req_${name}`, leaseId, gatewayId: 'g', organisationId: this.tenant, excludedReplicaIds: this.excluded, waitMsMax: this.waitMsMax }, model.nowMs));
  }
  override toString(): string {
    return `admit(${this.tenant}, not ${this.excluded.join('')}, ${this.waitMsMax})`;
  }
}

class Release extends Step {
  constructor(private readonly which: number, private readonly outcome: 'ok' | 'aborted' | 'engine-failed') {
    super();
  }
  protected override act(model: Model, { state }: Real): void {
    const leaseIds = [...state.leases.keys()];
    const leaseId = leaseIds[this.which % Math.max(1, leaseIds.length)] ?? 'lease_unknown';
    observe(model, release(state, [{ leaseId, outcome: this.outcome }, { leaseId, outcome: this.outcome }], model.nowMs).effects);
  }
  override toString(): string {
    return `release(${this.which}, ${this.outcome})`;
  }
}

class Cancel extends Step {
  constructor(private readonly which: number) {
    super();
  }
  protected override act(model: Model, { state }: Real): void {
    const name = 1 + (this.which % Math.max(1, model.admissions));
    const leaseId = `lease_${name}`;
    if (model.fates.get(leaseId) === 'waiting') model.fates.set(leaseId, 'cancelled');
    model.queued = model.queued.filter((queued) => queued.leaseId !== leaseId);
    observe(model, cancel(state, `req_${name}`, model.nowMs).effects);
  }
  override toString(): string {
    return `cancel(${this.which})`;
  }
}

class Fleet extends Step {
  constructor(private readonly ready: string[], private readonly draining: string[]) {
    super();
  }
  protected override act(model: Model, { state }: Real): void {
    const draining = this.draining.filter((replicaId) => !this.ready.includes(replicaId));
    observe(model, syncReplicas(state, { ready: this.ready.map(facts), draining: draining.map(facts), trouble: noStartTrouble }, model.nowMs));
  }
  override toString(): string {
    return `fleet(${this.ready.join('')}, draining ${this.draining.join('')})`;
  }
}

class Wait extends Step {
  constructor(private readonly forMs: number) {
    super();
  }
  protected override act(model: Model): void {
    model.nowMs += this.forMs;
  }
  override toString(): string {
    return `wait(${this.forMs})`;
  }
}

describe('admission under any order of events', () => {
  test('never more in flight than slots, never a lost or double end, never an idle slot beside a waiting request', () => {
    const commands = fc.commands([
      fc.tuple(fc.constantFrom('org_1', 'org_2'), fc.oneof({ weight: 3, arbitrary: fc.constant<string[]>([]) }, { weight: 1, arbitrary: fc.subarray(REPLICAS) }), fc.constantFrom(0, 500, 10_000)).map(([tenant, excluded, waitMsMax]) => new Admit(tenant, excluded, waitMsMax)),
      fc.tuple(fc.nat(20), fc.constantFrom('ok' as const, 'aborted' as const, 'engine-failed' as const, 'engine-failed' as const)).map(([which, outcome]) => new Release(which, outcome)),
      fc.nat(50).map((which) => new Cancel(which)),
      fc.tuple(fc.subarray(REPLICAS), fc.subarray(REPLICAS)).map(([ready, draining]) => new Fleet(ready, draining)),
      fc.constantFrom(1, 400, 2_000, 11_000).map((forMs) => new Wait(forMs)),
    ], { maxCommands: 80 });
    fc.assert(fc.property(commands, (steps) => {
      fc.modelRun(() => ({ model: { nowMs: 0, admissions: 0, fates: new Map<string, Fate>(), queued: [] }, real: new Real() }), steps);
    }), { numRuns: 400 });
  });
});
