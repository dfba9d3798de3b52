import { describe, expect, test } from '@jest/globals';
import { given, MemoryEventLog } from '@penstock/testing-kit';
import { accept, refuse, type Decider } from './decider.js';
import type { AppendRequest, AppendResult, NewEvent } from './event-log.js';
import { CONFLICT_RETRIES_MAX, handleCommand, type CommandMetadata } from './handle-command.js';

type Revoked = NewEvent<'api-key.revoked.v1', { keyId: string; reason: string }>;

const REASONS_MAX = 3;
const revoked = (reason: string): Revoked => ({ type: 'api-key.revoked.v1', data: { keyId: 'key_1', reason } });

/** Collects distinct reasons, at most three: accepts, changes nothing, or refuses. */
const reasons: Decider<readonly string[], { readonly reason: string }, Revoked> = {
  initialState: [],
  decide: ({ reason }, state) => {
    if (state.includes(reason)) return accept();
    if (state.length === REASONS_MAX) return refuse({ code: 'full', message: 'There are three reasons already.' });
    return accept(revoked(reason));
  },
  evolve: (state, event) => [...state, event.data.reason],
};

const ref = { context: 'access', aggregate: 'api-key', id: 'key_1' } as const;
const metadata = (commandId: string): CommandMetadata => ({ commandId, source: 'penstock/test', nowMs: 0, correlationId: 'cor', causationId: commandId });

/** Somebody else writes just before the first `times` appends. */
class ContestedLog extends MemoryEventLog {
  appends = 0;

  constructor(private readonly times: number, private readonly competitor: (turn: number) => Revoked) {
    super();
  }

  override async append(request: AppendRequest): Promise<AppendResult> {
    this.appends += 1;
    if (this.appends <= this.times) {
      const last = (await this.load(ref)).at(-1)?.sequence ?? 0;
      await super.append({ ...request, expected: last, commandId: `competitor_${this.appends}`, events: [this.competitor(this.appends)] });
    }
    return super.append(request);
  }
}

describe('a decider', () => {
  test('accepts, changes nothing, refuses', () => {
    given(reasons).when({ reason: 'lost' }).then(revoked('lost'));
    given(reasons, revoked('lost')).when({ reason: 'lost' }).then();
    const refusal = given(reasons, revoked('a'), revoked('b'), revoked('c')).when({ reason: 'd' }).thenRefused('full');
    expect(refusal.message).toContain('three');
  });
});

describe('handling a command', () => {
  test('loads, decides, appends and returns the state after', async () => {
    const log = new MemoryEventLog();
    expect(await handleCommand(log, reasons, ref, { reason: 'a' }, metadata('cmd_1'))).toEqual({ kind: 'done', state: ['a'], lastSequence: 1, events: [revoked('a')] });
    expect(await handleCommand(log, reasons, ref, { reason: 'b' }, metadata('cmd_2'))).toMatchObject({ state: ['a', 'b'], lastSequence: 2 });
    expect(log.all('EV_ACCESS').map((event) => [event.id, event.correlationId, event.causationId])).toEqual([['cmd_1.0', 'cor', 'cmd_1'], ['cmd_2.0', 'cor', 'cmd_2']]);
  });

  test('a command that changes nothing, or is refused, appends nothing', async () => {
    const log = new MemoryEventLog();
    for (const reason of ['a', 'b', 'c']) await handleCommand(log, reasons, ref, { reason }, metadata(`cmd_${reason}`));
    expect(await handleCommand(log, reasons, ref, { reason: 'a' }, metadata('cmd_4'))).toEqual({ kind: 'done', state: ['a', 'b', 'c'], lastSequence: 3, events: [] });
    expect(await handleCommand(log, reasons, ref, { reason: 'd' }, metadata('cmd_5'))).toMatchObject({ kind: 'refused', refusal: { code: 'full' } });
    expect(log.all('EV_ACCESS')).toHaveLength(3);
  });

  test('the same command again is recognised, even after others wrote', async () => {
    const log = new MemoryEventLog();
    await handleCommand(log, reasons, ref, { reason: 'a' }, metadata('cmd_1'));
    await handleCommand(log, reasons, ref, { reason: 'b' }, metadata('cmd_2'));
    expect(await handleCommand(log, reasons, ref, { reason: 'another decision' }, metadata('cmd_1'))).toEqual({ kind: 'done', state: ['a', 'b'], lastSequence: 2, events: [] });
  });

  test('after a conflict it decides again on the new state', async () => {
    const log = new ContestedLog(1, () => revoked('a'));
    expect(await handleCommand(log, reasons, ref, { reason: 'a' }, metadata('cmd_1'))).toEqual({ kind: 'done', state: ['a'], lastSequence: 1, events: [] });
    const refused = new ContestedLog(3, (turn) => revoked(`other ${turn}`));
    expect(await handleCommand(refused, reasons, ref, { reason: 'a' }, metadata('cmd_1'))).toMatchObject({ kind: 'refused', refusal: { code: 'full' } });
  });

  test('it gives up after a bounded number of conflicts, with a refusal that says to try again', async () => {
    const unbounded: typeof reasons = { ...reasons, decide: ({ reason }) => accept(revoked(reason)) };
    const log = new ContestedLog(Infinity, (turn) => revoked(`other ${turn}`));
    expect(await handleCommand(log, unbounded, ref, { reason: 'a' }, metadata('cmd_1'))).toMatchObject({ kind: 'refused', refusal: { code: 'conflict', retryAfterMs: 200 } });
    expect(log.appends).toBe(CONFLICT_RETRIES_MAX + 1);
  });
});
