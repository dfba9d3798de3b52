import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { pickReplica, type ReplicaCandidate } from './pick-replica.js';

const candidate = (replicaId: string, inFlight: number, slots = 4, isHealthy = true): ReplicaCandidate => ({ replicaId, inFlight, slots, isHealthy });
const context = { excludedReplicaIds: [], rotation: 0 };

describe('pickReplica', () => {
  test('takes the replica with the smallest share of busy slots', () => {
    expect(pickReplica([candidate('a', 2), candidate('b', 2, 8), candidate('c', 3)], context)?.replicaId).toBe('b');
  });

  test('leaves out full, unhealthy and excluded replicas', () => {
    const candidates = [candidate('full', 4), candidate('sick', 0, 4, false), candidate('failed', 0), candidate('left', 3)];
    expect(pickReplica(candidates, { excludedReplicaIds: ['failed'], rotation: 0 })?.replicaId).toBe('left');
    expect(pickReplica(candidates, { excludedReplicaIds: ['failed', 'left'], rotation: 0 })).toBeUndefined();
    expect(pickReplica([], context)).toBeUndefined();
  });

  test('takes equal replicas in turn', () => {
    const equal = [candidate('a', 0), candidate('b', 0), candidate('c', 0)];
    expect([0, 1, 2, 3].map((rotation) => pickReplica(equal, { excludedReplicaIds: [], rotation })?.replicaId)).toEqual(['a', 'b', 'c', 'a']);
  });

  test('finds a replica exactly when one passes, and none that passes is less loaded', () => {
    const anyCandidate = fc.record({ replicaId: fc.constantFrom('a', 'b', 'c', 'd', 'e'), slots: fc.integer({ min: 1, max: 4 }), inFlight: fc.integer({ min: 0, max: 5 }), isHealthy: fc.boolean() });
    fc.assert(fc.property(fc.uniqueArray(anyCandidate, { selector: (entry) => entry.replicaId }), fc.subarray(['a', 'b', 'c']), fc.nat(100), (candidates, excludedReplicaIds, rotation) => {
      const passing = candidates.filter((entry) => entry.isHealthy && entry.inFlight < entry.slots && !excludedReplicaIds.includes(entry.replicaId));
      const picked = pickReplica(candidates, { excludedReplicaIds, rotation });
      expect(picked === undefined).toBe(passing.length === 0);
      if (picked === undefined) return;
      expect(passing).toContain(picked);
      expect(passing.every((entry) => entry.inFlight / entry.slots >= picked.inFlight / picked.slots)).toBe(true);
    }));
  });
});
