import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { nodeJoinedV2 } from '@penstock/contract-events';
import { ReplicaAssignmentError, type ReplicaAssignment, type ReplicaDriver } from '@penstock/domain-lifecycle';

export interface ReplicaDriverUnderTest {
  readonly driver: ReplicaDriver;
  /** An assignment that works, for one of the driver's nodes. */
  assignment(replicaId: string): ReplicaAssignment;
  /** Lets what was begun go on until it stands still. */
  pass(): Promise<void>;
  /** Ends what runs for a replica without anybody having asked. */
  crash(replicaId: string): void;
  close(): Promise<void>;
}

const PHASES = ['waiting', 'pulling', 'loading', 'serving'];

/** What everybody who acts on placements must do. */
export function replicaDriverSuite(name: string, open: () => Promise<ReplicaDriverUnderTest>): void {
  describe(`${name} as a driver of replicas`, () => {
    let subject: ReplicaDriverUnderTest;
    let driver: ReplicaDriver;
    const seen = (replicaId: string) => driver.replicas().find((replica) => replica.replicaId === replicaId);
    beforeEach(async () => {
      subject = await open();
      driver = subject.driver;
    });
    afterEach(() => subject.close());

    test('stands for nodes that say what the fleet can read', () => {
      expect(driver.isSynced()).toBe(true);
      expect(driver.nodes().length).toBeGreaterThan(0);
      for (const { report, isReady, reason } of driver.nodes()) {
        expect(nodeJoinedV2.schema.parse(report)).toEqual(report);
        expect([driver.owns(report.nodeId), isReady, reason]).toEqual([true, true, null]);
      }
      expect(driver.owns('somebody-elses-node')).toBe(false);
    });

    test('takes a replica from nothing to serving, in order, and tells of each change', async () => {
      const phases: string[] = [];
      driver.onChange(() => phases.push(seen('rep_1')?.phase ?? 'nothing'));
      await driver.start(subject.assignment('rep_1'));
      expect(seen('rep_1')).toMatchObject({ url: null, blocked: null, end: null });
      await subject.pass();
      expect(seen('rep_1')).toMatchObject({ phase: 'serving', blocked: null, end: null });
      expect(seen('rep_1')?.url).toMatch(/^http/);
      const order = phases.map((phase) => PHASES.indexOf(phase));
      expect(order).toEqual([...order].sort((one, other) => one - other));
      expect(phases.at(-1)).toBe('serving');
    });

    test('makes one replica of two starts, also once it serves', async () => {
      await driver.start(subject.assignment('rep_1'));
      await driver.start(subject.assignment('rep_1'));
      await subject.pass();
      const before = seen('rep_1');
      await driver.start(subject.assignment('rep_1'));
      expect(driver.replicas()).toEqual([before]);
    });

    test('ends a replica that is retired, and shows that until it is gone', async () => {
      await driver.start(subject.assignment('rep_1'));
      await subject.pass();
      expect(await driver.retire('rep_1')).toBe('ending');
      expect(seen('rep_1')?.phase ?? 'ended').toMatch(/ending|ended/);
      await subject.pass();
      expect(seen('rep_1')?.phase ?? 'ended').toBe('ended');
      expect(await driver.retire('rep_unknown')).toBe('ending');
    });

    test('takes away what nobody wants, in any phase, and minds nothing that is not there', async () => {
      await driver.start(subject.assignment('rep_1'));
      await driver.remove('rep_1');
      await driver.start(subject.assignment('rep_2'));
      await subject.pass();
      await driver.remove('rep_2');
      await driver.remove('rep_unknown');
      await subject.pass();
      expect(driver.replicas()).toEqual([]);
    });

    test('tells a death that nobody asked for, until it is cleared away', async () => {
      await driver.start(subject.assignment('rep_1'));
      await subject.pass();
      subject.crash('rep_1');
      expect(seen('rep_1')).toMatchObject({ phase: 'ended', end: { wasAsked: false } });
      await driver.remove('rep_1');
      expect(seen('rep_1')).toBeUndefined();
    });

    test('refuses what it can never start, by an error that says so', async () => {
      const assignment = subject.assignment('rep_1');
      const acceleratorIds = ['acc_that_is_not_there'];
      await expect(driver.start({ ...assignment, acceleratorIds, members: [{ nodeId: assignment.nodeId, acceleratorIds }] })).rejects.toBeInstanceOf(ReplicaAssignmentError);
      expect(driver.replicas()).toEqual([]);
    });

    test('takes budgets again and again', async () => {
      await driver.protect([{ endpointId: 'ep_1', availableMin: 1 }]);
      await driver.protect([]);
      expect(Object.values(driver.counters()).every((value) => value >= 0)).toBe(true);
    });
  });
}
