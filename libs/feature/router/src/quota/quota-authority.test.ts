import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { syncQuota } from '@penstock/contract-commands';
import type { z } from 'zod';
import { FixedClock, LocalCommandClient, ManualTimers, MemorySignals } from '@penstock/testing-kit';
import { addressedTo } from '../instance-address.js';
import { OwnerLink } from '../owner-link.js';
import { RouterMembers } from '../router-members.js';
import { QuotaAuthority, QUOTA_LEARNING_MS } from './quota-authority.js';

type Request = z.output<typeof syncQuota.request>;

const START_MS = 1_000_000;
let clock: FixedClock;
let timers: ManualTimers;
let signals: MemorySignals;
let commands: LocalCommandClient;
let closers: (() => Promise<void>)[];
let sequence: number;

beforeEach(() => {
  clock = new FixedClock(START_MS);
  timers = new ManualTimers(clock);
  signals = new MemorySignals();
  commands = new LocalCommandClient();
  closers = [];
  sequence = 0;
});

afterEach(async () => {
  for (const close of closers) await close();
});

async function startAuthority(instanceId: string): Promise<QuotaAuthority> {
  const members = new RouterMembers(instanceId, { clock, signals, timers });
  const authority = new QuotaAuthority({ clock, timers, members, link: new OwnerLink(commands, members) });
  commands.serve(addressedTo(syncQuota, instanceId), async (request) => {
    const outcome = await authority.sync(request);
    return outcome.kind === 'ok' ? outcome : { kind: 'refused', refusal: { ...outcome.refusal, param: outcome.refusal.param ?? '', retryAfterMs: outcome.refusal.retryAfterMs ?? 0 } };
  });
  await members.start();
  closers.push(async () => {
    authority.close();
    await members.close();
  });
  return authority;
}

function asking(need: number, more: Partial<Request> = {}): Request {
  sequence += 1;
  return {
    gatewayId: 'inst_gateway', organisationId: 'org_1', sequence,
    buckets: [{ key: 'rpm/key_1/', kind: 'window', limit: 10, held: 0, usedTotal: 0, recentUsed: 0, refunds: [], need, demand: need, headroom: 0 }], ...more,
  };
}

async function granted(authority: QuotaAuthority, request: Request): Promise<number | 'learning' | string> {
  const outcome = await authority.sync(request);
  if (outcome.kind === 'refused') return outcome.refusal.code;
  return outcome.value.isLearning ? 'learning' : (outcome.value.grants[0]?.granted ?? -1);
}

describe('the authority over limits', () => {
  test('listens first, then lends, and never more than the limit', async () => {
    const authority = await startAuthority('inst_a');
    expect(await granted(authority, asking(6))).toBe('learning');
    await timers.advance(QUOTA_LEARNING_MS);
    expect(await granted(authority, asking(6))).toBe(6);
    expect(await granted(authority, asking(6, { gatewayId: 'inst_other' }))).toBe(0);
    expect(await granted(authority, asking(4, { gatewayId: 'inst_other' }))).toBe(4);
  });

  test('takes no report that is older than one it has', async () => {
    const authority = await startAuthority('inst_a');
    await timers.advance(QUOTA_LEARNING_MS);
    const late = asking(1);
    expect(await granted(authority, asking(1))).toBe(1);
    expect(await granted(authority, late)).toBe('conflict');
  });

  test('is one router for each organisation, whichever is asked; a new one learns before it lends', async () => {
    const first = await startAuthority('inst_a');
    await timers.advance(QUOTA_LEARNING_MS);
    expect(await granted(first, asking(3))).toBe(3);
    const second = await startAuthority('inst_b');
    await timers.advance(1);
    const ownerOf = async (organisationId: string) => {
      const outcome = await second.sync(asking(1, { organisationId }));
      return outcome.kind === 'ok' ? outcome.value.ownerId : outcome.refusal.code;
    };
    const owners = new Set<string>();
    for (let index = 0; index < 30; index += 1) {
      const organisationId = `org_${index}`;
      const fromSecond = await ownerOf(organisationId);
      const fromFirst = await first.sync(asking(1, { organisationId }));
      expect(fromFirst.kind === 'ok' ? fromFirst.value.ownerId : fromFirst.refusal.code).toBe(fromSecond);
      owners.add(fromSecond);
    }
    expect([...owners].sort()).toEqual(['inst_a', 'inst_b']);
  });
});
