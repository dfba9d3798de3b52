import { describe, expect, test } from '@jest/globals';
import type { LoanReport, ReplicaLoan } from '@penstock/contract-commands';
import fc from 'fast-check';
import { createAdmissionState, noStartTrouble, type AdmissionState } from './admission-state.js';
import { admit } from './admit.js';
import { expire } from './expire.js';
import { release } from './leases.js';
import { LOAN_TTL_MS, reportLoans } from './loans.js';
import { SlotPurse } from './slot-purse.js';
import { syncReplicas } from './sync-replicas.js';

const GATEWAYS = 3;
const REPLICAS = ['a', 'b'];
const SLOTS = 3;
const KV_TOKENS = 900;
const WORK = 100;
const LEARNING_MS = 1_000;
const settings = { endpointId: 'ep_1', queueMax: 8, queueWaitMsMax: 60_000, leaseTtlMs: 1e9 };

interface Sent {
  readonly report: LoanReport;
  readonly atMs: number;
  readonly owner: number;
  answer?: readonly ReplicaLoan[] | 'none';
}

interface Gateway {
  purse: SlotPurse;
  /** Requests on lent slots, by replica. */
  running: string[];
  sent: Sent | undefined;
}

/** Gateways and owners that follow each other, with a network that delays and loses. */
class Net {
  nowMs = 10_000;
  owner = 0;
  state: AdmissionState;
  readonly gateways: Gateway[] = Array.from({ length: GATEWAYS }, () => ({ purse: new SlotPurse('ep_1'), running: [], sent: undefined }));
  leases: string[] = [];
  private names = 0;

  constructor() {
    this.state = this.newOwner(0);
  }

  take(gateway: Gateway): void {
    const lease = gateway.purse.take({ excludedReplicaIds: [], workTokens: WORK }, this.nowMs);
    if (lease !== undefined) gateway.running.push(lease.replicaId);
    else this.ask();
  }

  give(gateway: Gateway, outcome: 'ok' | 'engine-failed' | 'engine-timed-out'): void {
    const replicaId = gateway.running.shift();
    if (replicaId !== undefined) gateway.purse.give(replicaId, WORK, outcome);
  }

  ask(): void {
    const name = (this.names += 1);
    this.note(admit(this.state, { requestId: `req_${name}`, leaseId: `lease_${name}`, gatewayId: 'g', organisationId: 'o', excludedReplicaIds: [], waitMsMax: 5_000, workTokens: WORK }, this.nowMs));
  }

  release(): void {
    const leaseId = this.leases.shift();
    if (leaseId !== undefined) this.note(release(this.state, [{ leaseId, outcome: 'ok' }], this.nowMs).effects);
  }

  /** A report starts, is heard by the owner, is answered, or is given up: each a step of its own. */
  talk(gateway: Gateway): void {
    if (gateway.sent === undefined) gateway.sent = { report: gateway.purse.report(this.nowMs), atMs: this.nowMs, owner: this.owner };
    else if (gateway.sent.answer === undefined) this.hear(gateway, gateway.sent);
    else {
      if (gateway.sent.answer !== 'none') gateway.purse.apply(gateway.sent.answer, gateway.sent.atMs);
      gateway.sent = undefined;
    }
  }

  lose(gateway: Gateway): void {
    gateway.sent = undefined;
  }

  pass(forMs: number): void {
    this.nowMs += forMs;
    this.note(expire(this.state, this.nowMs).effects);
  }

  /** The owner dies. What it granted runs on; while the next one learns, every gateway that lives reports. */
  takeOver(): void {
    this.owner += 1;
    this.leases = [];
    this.state = this.newOwner(this.nowMs + LEARNING_MS);
    for (const gateway of this.gateways) {
      gateway.sent = undefined;
      this.talk(gateway);
      this.talk(gateway);
    }
    this.pass(LEARNING_MS);
  }

  check(): void {
    for (const replicaId of REPLICAS) {
      const lent = this.gateways.reduce((sum, gateway) => sum + gateway.running.filter((id) => id === replicaId).length, 0);
      const leased = [...this.state.leases.values()].filter((held) => held.lease.replicaId === replicaId).length;
      expect(lent + leased).toBeLessThanOrEqual(SLOTS);
      const replica = this.state.replicas.get(replicaId);
      expect(replica?.inFlight).toBeGreaterThanOrEqual(leased);
      expect(replica?.tokensInFlight).toBeGreaterThanOrEqual(leased * WORK);
      expect((lent + leased) * WORK).toBeLessThanOrEqual(KV_TOKENS);
    }
  }

  private hear(gateway: Gateway, sent: Sent): void {
    if (sent.owner !== this.owner) return this.lose(gateway);
    const answer = reportLoans(this.state, `g_${this.gateways.indexOf(gateway)}`, sent.report, this.nowMs);
    if (answer !== undefined) this.note(answer.effects);
    sent.answer = answer?.loans ?? 'none';
  }

  private note(effects: ReturnType<typeof admit>): void {
    for (const effect of effects) {
      if (effect.kind === 'grant') this.leases.push(effect.leaseId);
      if (effect.kind === 'recall') for (const { purse } of this.gateways) purse.recall();
    }
  }

  private newOwner(grantsFromMs: number): AdmissionState {
    const state = createAdmissionState(settings, grantsFromMs);
    syncReplicas(state, { ready: REPLICAS.map((replicaId) => ({ replicaId, modelVersionId: 'mv_1', url: 'http://127.0.0.1:1', engine: 'vllm' as const, servedModel: 'm', slots: SLOTS, kvTokens: KV_TOKENS })), draining: [], trouble: noStartTrouble }, this.nowMs);
    return state;
  }
}

type Step = (net: Net) => void;
const onGateway = (act: (net: Net, gateway: Gateway) => void): fc.Arbitrary<Step> => fc.nat(GATEWAYS - 1).map((index) => (net) => {
  const gateway = net.gateways[index];
  if (gateway !== undefined) act(net, gateway);
});

const steps = fc.array(fc.oneof(
  { weight: 6, arbitrary: onGateway((net, gateway) => net.take(gateway)) },
  { weight: 5, arbitrary: onGateway((net, gateway) => net.give(gateway, 'ok')) },
  { weight: 1, arbitrary: onGateway((net, gateway) => net.give(gateway, 'engine-failed')) },
  { weight: 1, arbitrary: onGateway((net, gateway) => net.give(gateway, 'engine-timed-out')) },
  { weight: 9, arbitrary: onGateway((net, gateway) => net.talk(gateway)) },
  { weight: 1, arbitrary: onGateway((net, gateway) => net.lose(gateway)) },
  { weight: 2, arbitrary: fc.constant<Step>((net) => net.release()) },
  { weight: 1, arbitrary: fc.constant<Step>((net) => net.ask()) },
  { weight: 3, arbitrary: fc.constantFrom(1, 50, 400, 1_100).map((forMs): Step => (net) => net.pass(forMs)) },
), { maxLength: 200 });

describe('lent slots', () => {
  test('several gateways and the router together never fill more slots than there are, whatever the network loses', () => {
    fc.assert(fc.property(steps, (list) => {
      const net = new Net();
      for (const step of list) {
        step(net);
        // A gateway that is cut off for so long that its loans end keeps the requests it has; here none is.
        for (const gateway of net.gateways) if (gateway.running.length > 0 && gateway.sent === undefined) net.talk(gateway);
        for (const gateway of net.gateways) if (gateway.running.length > 0) net.talk(gateway);
        net.check();
      }
    }), { numRuns: 400 });
  });

  test('a new owner learns what is lent before it lends again', () => {
    fc.assert(fc.property(steps, steps, (before, after) => {
      const net = new Net();
      for (const step of before) {
        step(net);
        for (const gateway of net.gateways) if (gateway.running.length > 0) net.talk(gateway);
      }
      while (net.leases.length > 0) net.release();
      net.takeOver();
      net.check();
      for (const step of after) {
        step(net);
        for (const gateway of net.gateways) if (gateway.running.length > 0) net.talk(gateway);
        net.check();
      }
    }), { numRuns: 200 });
  });

  test('an endless uncontended load finds its slots in the gateway, and a queue calls them back', () => {
    const net = new Net();
    const [gateway] = net.gateways;
    if (gateway === undefined) throw new Error('no gateway');
    gateway.purse.enter();
    for (let count = 0; count < 9; count += 1) {
      net.talk(gateway);
      net.pass(100);
    }
    gateway.purse.leave();
    net.take(gateway);
    expect([gateway.running.length, net.leases.length]).toEqual([1, 0]);
    for (let count = 0; count < 12; count += 1) net.ask();
    expect(gateway.purse.take({ excludedReplicaIds: [], workTokens: 1 }, net.nowMs)).toBeUndefined();
    for (let count = 0; count < 3; count += 1) net.talk(gateway);
    expect(net.leases.length).toBe(REPLICAS.length * SLOTS - 1);
  });

  test('the slots of a gateway that is silent come back', () => {
    const net = new Net();
    const [gateway] = net.gateways;
    if (gateway === undefined) throw new Error('no gateway');
    gateway.purse.enter();
    for (let count = 0; count < 3; count += 1) net.talk(gateway);
    expect([...net.state.loans.values()].length).toBe(1);
    net.pass(LOAN_TTL_MS);
    expect([net.state.loans.size, ...net.state.serving.map((replica) => replica.inFlight)]).toEqual([0, 0, 0]);
    expect(gateway.purse.take({ excludedReplicaIds: [], workTokens: 1 }, net.nowMs)).toBeUndefined();
  });
});
