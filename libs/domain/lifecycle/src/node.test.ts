import { nodeJoinedV2, type NodeJoinedV2 } from '@penstock/contract-events';
import { given } from '@penstock/testing-kit';
import { describe, test } from '@jest/globals';
import { nodeDecider, type NodeEvent } from './node.js';

const machine = nodeJoinedV2.schema.parse(nodeJoinedV2.example);
const joined: NodeEvent = { type: 'node.joined.v2', data: machine };
const lost: NodeEvent = { type: 'node.lost.v1', data: { nodeId: machine.nodeId, cause: 'missed-heartbeats', reason: 'no heartbeat for 11 s' } };
const lose = { kind: 'lose', cause: 'missed-heartbeats', reason: 'no heartbeat for 11 s' } as const;

describe('a node', () => {
  test('joins', () => given(nodeDecider).when({ kind: 'join', ...machine }).then(joined));

  test('says nothing when it joins again unchanged, in whatever order its fields come', () => {
    const reordered = Object.fromEntries(Object.entries(machine).reverse()) as NodeJoinedV2;
    given(nodeDecider, joined).when({ kind: 'join', ...reordered }).then();
  });

  test('joins again when what it has changed', () => {
    const larger = { ...machine, memoryBytes: machine.memoryBytes * 2 };
    given(nodeDecider, joined).when({ kind: 'join', ...larger }).then({ type: 'node.joined.v2', data: larger });
  });

  test('is lost once', () => {
    given(nodeDecider, joined).when(lose).then(lost);
    given(nodeDecider, joined, lost).when(lose).then();
  });

  test('joins again after it was lost', () => given(nodeDecider, joined, lost).when({ kind: 'join', ...machine }).then(joined));

  test('cannot be lost before it joined', () => {
    given(nodeDecider).when(lose).thenRefused('not_found');
  });

  test('is closed, drained and opened again, each once', () => {
    const { nodeId } = machine;
    const cordoned: NodeEvent = { type: 'node.cordoned.v1', data: { nodeId, reason: 'upgrade' } };
    const drained: NodeEvent = { type: 'node.drain-requested.v1', data: { nodeId, reason: 'upgrade' } };
    const opened: NodeEvent = { type: 'node.uncordoned.v1', data: { nodeId, reason: 'done' } };
    given(nodeDecider, joined).when({ kind: 'cordon', reason: 'upgrade' }).then(cordoned);
    given(nodeDecider, joined, cordoned).when({ kind: 'cordon', reason: 'again' }).then();
    given(nodeDecider, joined, cordoned).when({ kind: 'request-drain', reason: 'upgrade' }).then(drained);
    given(nodeDecider, joined, drained).when({ kind: 'uncordon', reason: 'done' }).then(opened);
    given(nodeDecider, joined, drained, opened).when({ kind: 'uncordon', reason: 'done' }).then();
    given(nodeDecider, joined, drained, lost, joined).when({ kind: 'request-drain', reason: 'upgrade' }).then();
    given(nodeDecider).when({ kind: 'cordon', reason: 'upgrade' }).thenRefused('not_found');
  });

  test('forgets a reclaim once it is lost', () => {
    const reclaim = { kind: 'announce-reclaim', reclaimAt: '2026-11-29T12:02:00.000Z', reason: 'spot' } as const;
    const announced: NodeEvent = { type: 'node.reclaim-announced.v1', data: { nodeId: machine.nodeId, reclaimAt: reclaim.reclaimAt, reason: 'spot' } };
    given(nodeDecider, joined).when(reclaim).then(announced);
    given(nodeDecider, joined, announced).when(reclaim).then();
    given(nodeDecider, joined, announced, lost, joined).when(reclaim).then(announced);
  });
});
