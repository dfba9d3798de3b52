import { nodeJoinedV1, type NodeJoinedV1 } from '@penstock/contract-events';
import { given } from '@penstock/testing-kit';
import { describe, test } from '@jest/globals';
import { nodeDecider, type NodeEvent } from './node.js';

const machine = nodeJoinedV1.schema.parse(nodeJoinedV1.example);
const joined: NodeEvent = { type: 'node.joined.v1', data: machine };
const lost: NodeEvent = { type: 'node.lost.v1', data: { nodeId: machine.nodeId, cause: 'missed-heartbeats', reason: 'no heartbeat for 11 s' } };
const lose = { kind: 'lose', cause: 'missed-heartbeats', reason: 'no heartbeat for 11 s' } as const;

describe('a node', () => {
  test('joins', () => given(nodeDecider).when({ kind: 'join', ...machine }).then(joined));

  test('says nothing when it joins again unchanged, in whatever order its fields come', () => {
    const reordered = Object.fromEntries(Object.entries(machine).reverse()) as NodeJoinedV1;
    given(nodeDecider, joined).when({ kind: 'join', ...reordered }).then();
  });

  test('joins again when what it has changed', () => {
    const larger = { ...machine, memoryBytes: machine.memoryBytes * 2 };
    given(nodeDecider, joined).when({ kind: 'join', ...larger }).then({ type: 'node.joined.v1', data: larger });
  });

  test('is lost once', () => {
    given(nodeDecider, joined).when(lose).then(lost);
    given(nodeDecider, joined, lost).when(lose).then();
  });

  test('joins again after it was lost', () => given(nodeDecider, joined, lost).when({ kind: 'join', ...machine }).then(joined));

  test('cannot be lost before it joined', () => {
    given(nodeDecider).when(lose).thenRefused('not_found');
  });
});
