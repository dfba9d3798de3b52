import type { MigStepFact } from '@penstock/contract-events';
import { GeometryStepRefused, migGeometryDecider, migGeometryRef, type MigCommand } from '@penstock/domain-lifecycle';
import { handleCommand } from '@penstock/kernel';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { DriverWorld } from './driver-world-suite.js';

const GPU = 'acc_01';
const SMALL = { profile: '1g.10gb', start: 0 };
const LARGE = { profile: '3g.40gb', start: 0 };

let world: DriverWorld;
let taken: string[];

beforeEach(async () => {
  world = new DriverWorld();
  taken = [];
  world.driver.mig = {
    take: async (step) => {
      taken.push(`${step.kind} ${step.profile}@${step.start}`);
      return { uuid: step.kind === 'create' ? 'MIG-1' : null };
    },
  };
  const { report } = world.node();
  const [accelerator] = report.accelerators;
  world.driver.setNode(world.node('node_sim_1', { report: { ...report, nodeId: 'node_sim_1', accelerators: [{ ...accelerator!, acceleratorId: GPU, type: 'h100', mig: { isEnabled: true, instances: [{ ...SMALL, uuid: 'MIG-0' }] } }] } }));
  await world.deploy(1);
  await world.start();
  await world.place('rep_01');
});

afterEach(() => world.stop());

const plan = (forReplicaId: string): MigCommand => ({
  kind: 'plan-change', nodeId: 'node_sim_1', acceleratorId: GPU, changeId: 'mig_01', forReplicaId, reason: 'a test',
  steps: [{ kind: 'destroy', ...SMALL }, { kind: 'create', ...LARGE }] satisfies MigStepFact[],
});

async function say(command: MigCommand): Promise<void> {
  await handleCommand(world.log, migGeometryDecider, migGeometryRef(GPU), command, { commandId: 'cmd_plan', correlationId: 'cmd_plan', causationId: 'cmd_plan', source: 'penstock/test', nowMs: world.clock.now() });
}

describe('MIG changes by a driver', () => {
  test('are taken step by step, each told once, also over restarts', async () => {
    await say(plan('rep_01'));
    for (let restarts = 0; restarts < 4; restarts += 1) {
      await world.run(60);
      await world.stop();
      await world.start();
    }
    await world.run(1_000);
    expect(world.typesOf(GPU)).toEqual(['mig.change-planned.v1', 'mig.instance-created.v1', 'mig.instance-destroyed.v1', 'mig.instance-created.v1', 'mig.change-ended.v1']);
    expect(taken).toEqual(['destroy 1g.10gb@0', 'create 3g.40gb@0']);
    expect(world.fleet().geometries.get(GPU)).toMatchObject({ instances: [{ ...LARGE, uuid: 'MIG-1' }], change: null, lastEnd: { outcome: 'done' } });
  });

  test('end as failed when the GPU refuses, and are tried again when it only did not answer', async () => {
    let tries = 0;
    world.driver.mig = {
      take: async () => {
        tries += 1;
        throw tries < 3 ? new Error('it does not answer') : new GeometryStepRefused('in use by an engine');
      },
    };
    await say(plan('rep_01'));
    await world.run(10_000);
    expect(tries).toBe(3);
    expect(world.fleet().geometries.get(GPU)).toMatchObject({ instances: [SMALL], change: null, lastEnd: { outcome: 'failed', reason: 'in use by an engine' } });
  });

  test('are abandoned with the replica that they were for', async () => {
    await world.say('rep_01', { kind: 'stop', reason: 'a test' });
    await say(plan('rep_01'));
    await world.run(1_000);
    expect(taken).toEqual([]);
    expect(world.fleet().geometries.get(GPU)?.lastEnd?.outcome).toBe('abandoned');
  });
});
