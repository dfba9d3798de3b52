import { describe, expect, test } from '@jest/globals';
import { batchJobCreatedV1 } from './batch-job-created.v1.js';
import { nodeJoinedV1 } from './node-joined.v1.js';
import { placementRefusedV1 } from './placement-refused.v1.js';
import { replicaPlacedV1 } from './replica-placed.v1.js';
import { usageRecordedV1 } from './usage-recorded.v1.js';
import { parseStoredEvent, type Upcaster } from './upcast.js';

const ancient: Upcaster = { from: 'api-key.revoked.v8', to: 'api-key.revoked.v9', upcast: (data) => ({ ...(data as object), why: 'unknown' }) };
const old: Upcaster = {
  from: 'api-key.revoked.v9',
  to: 'api-key.revoked.v1',
  upcast: (data) => {
    const { key, why } = data as { key: string; why: string };
    return { keyId: key, reason: why };
  },
};

describe('upcasting', () => {
  test('goes through every step to the newest version and checks it', () => {
    expect(parseStoredEvent('api-key.revoked.v8', { key: 'key_1' }, [old, ancient])).toEqual({ kind: 'parsed', type: 'api-key.revoked.v1', data: { keyId: 'key_1', reason: 'unknown' } });
    expect(parseStoredEvent('api-key.revoked.v9', { key: 'key_1', why: 'rotated' }, [old, ancient])).toMatchObject({ data: { keyId: 'key_1', reason: 'rotated' } });
  });

  test('a node, a placement and a refusal of version 1 keep all they said', () => {
    const joined = parseStoredEvent('node.joined.v1', nodeJoinedV1.example);
    expect(joined).toMatchObject({ kind: 'parsed', type: 'node.joined.v2', data: { ...nodeJoinedV1.example, failureDomain: 'node_01', market: 'on_demand', taints: [], price: null } });
    const { nodeId, acceleratorIds, reason, ...placed } = replicaPlacedV1.example;
    for (const type of ['replica.placed', 'placement.decided']) {
      expect(parseStoredEvent(`${type}.v1`, replicaPlacedV1.example)).toMatchObject({ type: `${type}.v2`, data: { ...placed, members: [{ nodeId, acceleratorIds }], mig: null, replaces: null, reason } });
    }
    expect(parseStoredEvent('placement.refused.v1', placementRefusedV1.example)).toMatchObject({ type: 'placement.refused.v2', data: { ...placementRefusedV1.example, hint: null } });
  });

  test('usage of version 1 is one record among the records of version 2', () => {
    expect(parseStoredEvent('usage.recorded.v1', usageRecordedV1.example)).toEqual({ kind: 'parsed', type: 'usage.recorded.v2', data: { records: [usageRecordedV1.example] } });
  });

  test('a batch job of version 1 keeps its result files', () => {
    expect(parseStoredEvent('batch-job.created.v1', batchJobCreatedV1.example)).toEqual({ kind: 'parsed', type: 'batch-job.created.v2', data: { ...batchJobCreatedV1.example, outputExpiresAfterSeconds: null } });
  });

  test('what a step makes must match the newest contract', () => {
    expect(parseStoredEvent('api-key.revoked.v9', { key: 'not an id', why: '' }, [old])).toMatchObject({ kind: 'poison', reason: expect.stringMatching(/^api-key\.revoked\.v1 does not match its contract at keyId/) });
  });

  test('a step that throws, a table that loops and an unknown type are poison, not exceptions', () => {
    const throwing: Upcaster = { ...old, upcast: () => { throw new TypeError('no key'); } };
    expect(parseStoredEvent('api-key.revoked.v9', {}, [throwing])).toEqual({ kind: 'poison', reason: 'upcasting api-key.revoked.v9 to api-key.revoked.v1 failed: TypeError: no key' });
    const loop: Upcaster = { from: 'a.b.v1', to: 'a.b.v1', upcast: (data) => data };
    expect(parseStoredEvent('a.b.v1', {}, [loop])).toEqual({ kind: 'poison', reason: 'the upcasters from a.b.v1 do not end' });
    expect(parseStoredEvent('no.such.v1', {})).toEqual({ kind: 'poison', reason: 'no contract for type no.such.v1' });
  });

  test('fields that this version does not know are dropped, since a newer writer may add some', () => {
    expect(parseStoredEvent('api-key.revoked.v1', { keyId: 'key_1', reason: '', addedLater: 1 })).toEqual({ kind: 'parsed', type: 'api-key.revoked.v1', data: { keyId: 'key_1', reason: '' } });
  });

  test('a body that is no object is poison', () => {
    for (const body of [null, undefined, 7, 'text', []]) expect(parseStoredEvent('api-key.revoked.v1', body).kind).toBe('poison');
  });
});
