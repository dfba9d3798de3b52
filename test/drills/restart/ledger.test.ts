import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { usageRecordedV1, type UsageRecord } from '@penstock/contract-events';
import { compareUsage, readTruth, type EngineTruth } from './ledger.js';

const usage = (requestId: string, change: Partial<UsageRecord> = {}): UsageRecord => ({ ...usageRecordedV1.schema.parse(usageRecordedV1.example), requestId, promptTokens: 10, completionTokens: 5, ...change });
const truth = (produced: number): EngineTruth => ({ produced, delivered: produced, promptTokens: 10, endings: ['stop'] });

describe('comparing usage with the engine', () => {
  test('equal figures are neither lost, doubled nor wrong', () => {
    expect(compareUsage(new Map([['a', truth(5)]]), [usage('a')])).toEqual({ lost: [], doubled: [], wrong: [], completed: 1, ended: 1 });
  });

  test('a request without an event is lost', () => {
    expect(compareUsage(new Map([['a', truth(5)]]), []).lost).toEqual(['a']);
  });

  test('two events of one request, or more tokens than were made, are doubled', () => {
    expect(compareUsage(new Map([['a', truth(5)]]), [usage('a'), usage('a')]).doubled).toEqual(['a']);
    expect(compareUsage(new Map([['a', truth(4)]]), [usage('a', { status: 'aborted' })]).doubled).toEqual(['a']);
  });

  test('a completed request must be right to the token; an interrupted one may have fewer', () => {
    expect(compareUsage(new Map([['a', truth(6)]]), [usage('a')]).wrong).toEqual(['a']);
    expect(compareUsage(new Map([['a', truth(6)]]), [usage('a', { status: 'interrupted' })]).wrong).toEqual([]);
  });

  test('a torn last line is no entry, and attempts of one request add up', () => {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-ledger-'));
    const file = join(folder, 'ledger.jsonl');
    const end = (produced: number): string => JSON.stringify({ event: 'end', requestId: 'req_a', promptTokens: 10, producedTokens: produced, deliveredTokens: produced, finished: 'stop' });
    writeFileSync(file, `${JSON.stringify({ event: 'start', requestId: 'req_a', promptTokens: 10 })}\n${end(2)}\n${end(3)}\n{"event":"st`);
    expect(readTruth(file)).toEqual(new Map([['req_a', { produced: 5, delivered: 5, promptTokens: 10, endings: ['stop', 'stop'] }]]));
    rmSync(folder, { recursive: true });
  });
});
