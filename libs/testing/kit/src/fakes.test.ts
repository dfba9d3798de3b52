import { describe, expect, test } from '@jest/globals';
import { defineCommand } from '@penstock/contract-commands';
import { isId } from '@penstock/kernel';
import { z } from 'zod';
import { FixedClock } from './fixed-clock.js';
import { LocalCommandClient } from './local-command-client.js';
import { ManualTimers } from './manual-timers.js';
import { MemorySignals } from './memory-signals.js';
import { SequentialIds } from './sequential-ids.js';

describe('manual timers', () => {
  test('fire in order of their due time, with the clock at it, and can be cancelled', async () => {
    const clock = new FixedClock(1_000);
    const timers = new ManualTimers(clock);
    const fired: [string, number][] = [];
    timers.after(30, () => fired.push(['late', clock.now()]));
    const cancel = timers.every(20, () => void fired.push(['every', clock.now()]));
    timers.after(5, () => timers.after(1, () => fired.push(['nested', clock.now()])));
    timers.after(10, () => fired.push(['cancelled', clock.now()]))();
    await timers.advance(40);
    expect(fired).toEqual([['nested', 1_006], ['every', 1_020], ['late', 1_030], ['every', 1_040]]);
    expect(clock.now()).toBe(1_040);
    cancel();
    await timers.advance(100);
    expect(fired).toHaveLength(4);
    expect(timers.size).toBe(0);
  });
});

test('signals match as subjects do', async () => {
  const signals = new MemorySignals();
  const heard: string[] = [];
  await signals.subscribe('tele.node.*', (_data, subject) => heard.push(`one ${subject}`));
  const all = await signals.subscribe('tele.>', (_data, subject) => heard.push(`all ${subject}`));
  signals.publish('tele.node.a', {});
  await all.close();
  signals.publish('tele.node.a.b', {});
  signals.publish('other', {});
  expect(heard).toEqual(['one tele.node.a', 'all tele.node.a']);
  expect(signals.published).toHaveLength(3);
});

test('sequential ids look like real ones', () => {
  const ids = new SequentialIds();
  expect([ids.next('ep'), ids.next('req')]).toEqual(['ep_00000000000000000000000000000001', 'req_00000000000000000000000000000002']);
  expect(isId(ids.next('key'))).toBe(true);
});

test('local commands are checked on both sides', async () => {
  const double = defineCommand({ subject: 'cmd.test.double', summary: 'Doubles.', request: z.object({ value: z.int().default(1) }), reply: z.object({ value: z.int() }) });
  const client = new LocalCommandClient();
  await expect(client.send(double, {})).rejects.toMatchObject({ reason: 'no-responders' });
  client.serve(double, ({ value }) => ({ kind: 'ok', value: { value: value === 13 ? 0.5 : value * 2 } }));
  expect(await client.send(double, {})).toEqual({ kind: 'ok', value: { value: 2 } });
  await expect(client.send(double, { value: 13 })).rejects.toThrow(/does not match the contract/);
});
