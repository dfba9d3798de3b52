import { describe, expect, test } from '@jest/globals';
import { releaseLeases, renewLeases, type Lease } from '@penstock/contract-commands';
import { eventually, FixedClock, LocalCommandClient, ManualTimers } from '@penstock/testing-kit';
import { LeaseBook, RENEW_INTERVAL_MS } from './lease-book.js';
import { LentSlots } from './lent-slots.js';

const leaseOf = (leaseId: string, replicaId = 'rep_1'): Lease => ({ leaseId, endpointId: 'ep_1', replicaId, modelVersionId: 'mv_1', url: 'http://127.0.0.1:1', engine: 'vllm', servedModel: 'm', expiresAtMs: 0, queuedMs: 0, coldStart: false });

function start() {
  const clock = new FixedClock();
  const timers = new ManualTimers(clock);
  const commands = new LocalCommandClient();
  const sent = (subject: string) => commands.sent.filter((message) => message.subject === subject).map((message) => message.request);
  const lent = new LentSlots('gw_1', { clock, timers, commands });
  return { book: new LeaseBook('gw_1', lent, { clock, timers, commands }), lent, timers, commands, sent };
}

describe('LeaseBook', () => {
  test('counts what is in flight per replica, and a second release of a lease changes nothing', () => {
    const { book } = start();
    book.take(leaseOf('lease_1'));
    book.take(leaseOf('lease_2'));
    expect(book.inFlightOf('rep_1')).toBe(2);
    book.release(leaseOf('lease_1'), 'ok');
    book.release(leaseOf('lease_1'), 'ok');
    expect(book.inFlightOf('rep_1')).toBe(1);
    book.release(leaseOf('lease_2'), 'aborted');
    expect(book.inFlightOf('rep_1')).toBe(0);
  });

  test('tells the router of releases in batches, while it answers and after it was away', async () => {
    const { book, commands, sent } = start();
    for (let index = 0; index < 5; index += 1) book.take(leaseOf(`lease_${index}`));
    book.release(leaseOf('lease_0'), 'ok');
    book.release(leaseOf('lease_1'), 'engine-failed');
    // Nobody serves it yet: these are lost, and their leases expire.
    await new Promise((resolve) => setImmediate(resolve));
    commands.serve(releaseLeases, ({ releases }) => ({ kind: 'ok', value: { released: releases.length } }));
    for (const index of [2, 3, 4]) book.release(leaseOf(`lease_${index}`), 'ok');
    const messages = await eventually(() => sent(releaseLeases.subject), (found) => found.length > 0);
    expect(messages).toEqual([{ releases: ['lease_2', 'lease_3', 'lease_4'].map((leaseId) => ({ leaseId, replicaId: 'rep_1', endpointId: 'ep_1', outcome: 'ok' })) }]);
  });

  test('renews what is held for long, and only that', async () => {
    const { book, lent, timers, commands, sent } = start();
    commands.serve(renewLeases, ({ leases }) => ({ kind: 'ok', value: { renewed: leases.length } }));
    book.take(leaseOf('lease_long'));
    await timers.advance(RENEW_INTERVAL_MS - 1);
    book.take(leaseOf('lease_new'));
    await timers.advance(1);
    expect(sent(renewLeases.subject)).toMatchObject([{ gatewayId: 'gw_1', leases: [{ leaseId: 'lease_long' }] }]);
    book.release(leaseOf('lease_long'), 'ok');
    book.release(leaseOf('lease_new'), 'ok');
    await timers.advance(10 * RENEW_INTERVAL_MS);
    expect(sent(renewLeases.subject)).toHaveLength(1);
    book.stop();
    await lent.close();
    expect(timers.size).toBe(0);
  });
});
