import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UsageRecord } from '@penstock/contract-events';
import { settleUsage, UsageOutboxFullError, usageRecordsOf, type UsageDraft } from '@penstock/domain-usage';
import { EventLogUnavailableError, silentLogger, type AppendRequest, type AppendResult } from '@penstock/kernel';
import { eventually, MemoryEventLog } from '@penstock/testing-kit';
import { FileUsageSpool, type SpoolOptions } from './file-usage-spool.js';
import { FolderLockedError } from './folder-lock.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-spool-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** An event log whose broker can be away. */
class FlakyLog extends MemoryEventLog {
  isAway = false;
  attempts = 0;

  override append(request: AppendRequest): Promise<AppendResult> {
    this.attempts += 1;
    return this.isAway ? Promise.reject(new EventLogUnavailableError('away')) : super.append(request);
  }
}

/** An event log that stores what it gets, and whose confirmations are lost. */
class ForgetfulLog extends MemoryEventLog {
  answers = false;
  readonly appended: string[] = [];

  override async append(request: AppendRequest): Promise<AppendResult> {
    const before = this.all('EV_USAGE').length;
    const result = await super.append(request);
    this.appended.push(...this.all('EV_USAGE').slice(before).map(({ id }) => id));
    if (this.all('EV_USAGE').length === before) this.appended.push(`${request.commandId}.0`);
    if (!this.answers) throw new EventLogUnavailableError('the confirmation was lost');
    return result;
  }
}

const draftOf = (requestId: string): UsageDraft => ({
  requestId, organisationId: 'org_1', projectId: 'proj_1', keyId: 'key_1', endpointId: 'ep_1', modelName: 'm', modelVersionId: 'mv_1', batchId: null, operation: 'chat', stream: true, startedAt: '2026-11-29T12:00:00.000Z', replicaId: null,
});
const recordOf = (requestId: string, completionTokens: number): UsageRecord => settleUsage(draftOf(requestId), {
  replicaId: 'rep_1', promptTokens: 5, cachedTokens: 0, completionTokens, reasoningTokens: 0, status: 'completed', finishReason: 'stop', httpStatus: 200, errorCode: null, tokensEstimated: false, queueMs: 0, ttftMs: 1, durationMs: 2, engineMs: 1,
});
const open = (log: MemoryEventLog, more: Partial<SpoolOptions> = {}): Promise<FileUsageSpool> => FileUsageSpool.open({ folder, log, logger: silentLogger, now: () => Date.parse('2026-11-29T12:00:09.000Z'), ...more });
const published = (log: MemoryEventLog): UsageRecord[] => log.all('EV_USAGE').flatMap(usageRecordsOf);
/** What a process that is killed leaves behind: its files, and a lock of a process that is gone. */
function abandon(spool: FileUsageSpool): void {
  expect(spool.stats().openRequests).toBeGreaterThanOrEqual(0);
  writeFileSync(join(folder, 'lock'), JSON.stringify({ pid: 2 ** 30, startTicks: '1' }));
}

describe('FileUsageSpool', () => {
  test('publishes what is settled, once, and leaves an empty folder', async () => {
    const log = new FlakyLog();
    const spool = await open(log);
    const usage = spool.open(draftOf('req_1'));
    usage.progress({ replicaId: 'rep_1', promptTokens: 5, cachedTokens: 0, completionTokens: 1, reasoningTokens: 0 });
    await Promise.all([usage.settle(recordOf('req_1', 7)), usage.settle(recordOf('req_1', 9))]);
    await spool.drain(5_000);
    expect(published(log)).toEqual([recordOf('req_1', 7)]);
    expect(log.all('EV_USAGE')[0]).toMatchObject({ id: 'req_1.0', ref: { context: 'usage', aggregate: 'org_1', id: 'ep_1' } });
    await spool.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('records of one organisation and endpoint share one event; a sampled request and a batch line have their own', async () => {
    const log = new FlakyLog();
    const spool = await open(log);
    const settled = (requestId: string, more: Partial<UsageDraft> = {}, traceparent?: string): Promise<void> => spool.open({ ...draftOf(requestId), ...more }, traceparent).settle({ ...recordOf(requestId, 1), ...more });
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7';
    await Promise.all([settled('req_1'), settled('req_2', {}, `${trace}-00`), settled('req_3', {}, `${trace}-01`), settled('req_4', { organisationId: 'org_2' }), settled('req_5', { batchId: 'batch_1' }), settled('req_6')]);
    await spool.drain(5_000);
    const events = log.all('EV_USAGE').map((event) => [event.id, event.ref.aggregate, usageRecordsOf(event).map(({ requestId }) => requestId), event.traceparent]);
    expect(events).toHaveLength(4);
    expect(events).toEqual(expect.arrayContaining([
      ['usage_req_1.0', 'org_1', ['req_1', 'req_2', 'req_6'], undefined], ['req_3.0', 'org_1', ['req_3'], `${trace}-01`], ['req_4.0', 'org_2', ['req_4'], undefined], ['req_5.0', 'org_1', ['req_5'], undefined],
    ]));
    await spool.close();
  });

  test('after an unclear end, and after a crash, records go out in the event that the broker may have', async () => {
    const log = new ForgetfulLog();
    const dead = await open(log);
    await Promise.all(['req_1', 'req_2', 'req_3'].map((id, index) => dead.open(draftOf(id)).settle(recordOf(id, index))));
    await eventually(() => log.appended, (ids) => ids.length >= 2);
    await dead.drain(0);
    abandon(dead);
    const next = await open(log);
    await eventually(() => log.appended, (ids) => ids.length >= 4);
    log.answers = true;
    await next.drain(5_000);
    expect(new Set(log.appended)).toEqual(new Set(['usage_req_1.0']));
    expect(published(log)).toEqual([recordOf('req_1', 0), recordOf('req_2', 1), recordOf('req_3', 2)]);
    await next.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('keeps everything while the event log is away', async () => {
    const log = new FlakyLog();
    log.isAway = true;
    const spool = await open(log);
    for (let index = 0; index < 50; index += 1) await spool.open(draftOf(`req_${index}`)).settle(recordOf(`req_${index}`, index));
    expect(published(log)).toEqual([]);
    expect(spool.stats()).toMatchObject({ unpublished: 50, openRequests: 0 });
    log.isAway = false;
    await eventually(() => spool.stats().unpublished, (count) => count === 0);
    expect(published(log).map((record) => record.completionTokens).sort((left, right) => left - right)).toEqual(Array.from({ length: 50 }, (_, index) => index));
    await spool.close();
  });

  test('settles after a crash what was open, with the last known progress, and sends again what was not confirmed', async () => {
    const away = new FlakyLog();
    away.isAway = true;
    const dead = await open(away);
    const running = dead.open(draftOf('req_open'));
    running.progress({ replicaId: 'rep_1', promptTokens: 5, cachedTokens: 0, completionTokens: 3, reasoningTokens: 0 });
    dead.open(draftOf('req_untouched'));
    await dead.open(draftOf('req_settled')).settle(recordOf('req_settled', 7));
    await dead.drain(0);
    abandon(dead);
    // A line that was being written when the process died.
    const [segment] = readdirSync(folder).filter((name) => name.startsWith('segment'));
    appendFileSync(join(folder, segment ?? ''), '{"t":"settle","record":{"requestId":"req_o');
    const log = new FlakyLog();
    const next = await open(log);
    await next.drain(5_000);
    expect(Object.fromEntries(published(log).map((record) => [record.requestId, [record.status, record.completionTokens, record.tokensEstimated]]))).toEqual({
      req_open: ['interrupted', 3, true], req_untouched: ['interrupted', 0, true], req_settled: ['completed', 7, false],
    });
    await next.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('does not send again what was confirmed', async () => {
    const first = new FlakyLog();
    const dead = await open(first);
    await dead.open(draftOf('req_1')).settle(recordOf('req_1', 1));
    await dead.drain(5_000);
    abandon(dead);
    const second = new FlakyLog();
    const next = await open(second);
    expect(next.stats().unpublished).toBe(0);
    await next.close();
    expect(second.attempts).toBe(0);
  });

  test('files go while one request stays open for long, which a crash still does not lose', async () => {
    const log = new FlakyLog();
    const spool = await open(log);
    const long = spool.open({ ...draftOf('req_long') });
    for (let round = 0; round < 6; round += 1) {
      await Promise.all(Array.from({ length: 1_000 }, (_, index) => spool.open(draftOf(`req_${round}_${index}`)).settle(recordOf(`req_${round}_${index}`, 1))));
      for (let token = 0; token < 200; token += 1) long.progress({ replicaId: 'rep_1', promptTokens: 5, cachedTokens: 0, completionTokens: round, reasoningTokens: 0 });
      await spool.drain(10_000);
    }
    expect(readdirSync(folder).filter((name) => name.startsWith('segment'))).toHaveLength(1);
    abandon(spool);
    const next = await open(log);
    await next.drain(5_000);
    expect(published(log).filter((record) => record.requestId === 'req_long')).toMatchObject([{ status: 'interrupted', completionTokens: 5 }]);
    expect(published(log)).toHaveLength(6_001);
    expect(log.all('EV_USAGE').length).toBeLessThan(1_000);
    await next.close();
  });

  test('refuses new requests at its limit, and takes them again when there is room', async () => {
    const log = new FlakyLog();
    log.isAway = true;
    const spool = await open(log, { bytesMax: 4_000 });
    const opened = [];
    expect(() => {
      for (let index = 0; index < 100; index += 1) opened.push(spool.open(draftOf(`req_${index}`)));
    }).toThrow(UsageOutboxFullError);
    expect(opened.length).toBeGreaterThan(3);
    await spool.close();
    expect(readFileSync(join(folder, readdirSync(folder).find((name) => name.startsWith('segment')) ?? ''), 'utf8').split('\n')).toHaveLength(opened.length + 1);
  });

  test('two processes do not share a folder; the lock of a dead one is taken over', async () => {
    const spool = await open(new FlakyLog());
    await expect(open(new FlakyLog())).rejects.toThrow(FolderLockedError);
    abandon(spool);
    const next = await open(new FlakyLog());
    await next.close();
  });
});
