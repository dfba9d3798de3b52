import { expect, test } from '@jest/globals';
import { CIRCUIT_FAILURES_IN_A_ROW, CIRCUIT_OPEN_MS } from '@penstock/domain-routing';
import { OwnCircuits } from './own-circuits.js';

const REPLICAS = ['a', 'b', 'c'];

function failing(circuits: OwnCircuits, replicaId: string, nowMs = 0): void {
  for (let index = 0; index < CIRCUIT_FAILURES_IN_A_ROW; index += 1) circuits.record(replicaId, `lease_${replicaId}_${index}`, 'engine-failed', nowMs);
}

test('a replica that fails is left alone until one request finds that it works again', () => {
  const circuits = new OwnCircuits();
  failing(circuits, 'a');
  expect([...circuits.leftAlone(REPLICAS, CIRCUIT_OPEN_MS - 1)]).toEqual(['a']);
  expect(circuits.leftAlone(REPLICAS, CIRCUIT_OPEN_MS).size).toBe(0);
  circuits.chosen('a', 'probe');
  expect([...circuits.leftAlone(REPLICAS, CIRCUIT_OPEN_MS)]).toEqual(['a']);
  circuits.record('a', 'of-before', 'ok', CIRCUIT_OPEN_MS);
  expect(circuits.leftAlone(REPLICAS, CIRCUIT_OPEN_MS).size).toBe(1);
  circuits.record('a', 'probe', 'ok', CIRCUIT_OPEN_MS);
  expect(circuits.leftAlone(REPLICAS, CIRCUIT_OPEN_MS).size).toBe(0);
});

test('never more than half are left alone, and those that failed first come back first', () => {
  const circuits = new OwnCircuits();
  for (const [index, replicaId] of REPLICAS.entries()) failing(circuits, replicaId, index);
  expect([...circuits.leftAlone(REPLICAS, 5)]).toEqual(['c']);
  expect(circuits.leftAlone(['a'], 5).size).toBe(0);
});
