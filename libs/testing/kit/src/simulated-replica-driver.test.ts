import { nodeJoinedV2 } from '@penstock/contract-events';
import type { ReplicaAssignment } from '@penstock/domain-lifecycle';
import { FixedClock } from './fixed-clock.js';
import { ManualTimers } from './manual-timers.js';
import { replicaDriverSuite } from './replica-driver-suite.js';
import { SimulatedReplicaDriver } from './simulated-replica-driver.js';

const PASS_MS = 1_000;

replicaDriverSuite('the scripted driver', async () => {
  const timers = new ManualTimers(new FixedClock());
  const driver = new SimulatedReplicaDriver(timers);
  const report = { ...nodeJoinedV2.schema.parse(nodeJoinedV2.example), nodeId: 'node_sim_1' };
  driver.setNode({ report, isReady: true, reason: null });
  const acceleratorIds = report.accelerators.map((accelerator) => accelerator.acceleratorId);
  const assignment = (replicaId: string): ReplicaAssignment => ({
    replicaId, endpointId: 'ep_1', modelVersionId: 'mv_1', nodeId: report.nodeId, acceleratorIds, members: [{ nodeId: report.nodeId, acceleratorIds }], mig: null, tolerations: [], reservedBytes: 1_000,
    engine: 'vllm', modelName: 'a-model', source: { kind: 'none' }, slots: 4, contextTokens: 2_048, engineOptions: {},
  });
  return {
    driver, assignment,
    pass: () => timers.advance(PASS_MS),
    crash: (replicaId) => driver.observe(replicaId, { phase: 'ended', end: { wasAsked: false, reason: 'it crashed' } }),
    close: () => driver.close(),
  };
});
