import { createHash } from 'node:crypto';
import { asCatalogueEvent } from '@penstock/contract-events';
import { UsageFold, type SequencedUsage, type UsageSum } from '@penstock/domain-usage';
import type { ProjectionVerification, RecordedEvent, Timers } from '@penstock/kernel';
import type { MeteringPorts } from './metering-ports.js';

const NAME = 'metering.usage_clickhouse';
const STREAM = 'EV_USAGE';

/** What was recorded just now may still be on its way to the store: it gets this long before a difference is one. */
const CATCH_UP_ATTEMPTS = 40;
const CATCH_UP_DELAY_MS = 250;

/**
 * Adds up all usage in the event log, from the first event, and compares the sums of every organisation, project, key and
 * model with those of the store. With `heal` it writes every record of the log to the store again, which can only fill gaps.
 */
export async function verifyUsageStore(ports: Pick<MeteringPorts, 'log' | 'reports' | 'sink' | 'timers'>, heal: boolean): Promise<ProjectionVerification> {
  const { firstSequence, lastSequence } = await ports.log.bounds(STREAM);
  const fold = new UsageFold();
  let events = 0;
  if (lastSequence > 0) {
    for await (const batch of ports.log.read(STREAM, { fromSequence: firstSequence, toSequence: lastSequence })) {
      const usage = usageIn(batch);
      for (const record of usage) fold.add(record);
      if (heal) await ports.sink.write(usage);
      events += batch.length;
    }
  }
  const sums = fold.sums();
  const rebuiltDigest = digestOf(sums);
  const liveDigest = await caughtUpDigest(ports, firstSequence, lastSequence, rebuiltDigest);
  const rows = sums.reduce((total, sum) => total + sum.requests, 0);
  return { name: NAME, identical: liveDigest === rebuiltDigest, events, rows, liveDigest, rebuiltDigest, positions: { [STREAM]: lastSequence } };
}

async function caughtUpDigest(ports: Pick<MeteringPorts, 'reports' | 'timers'>, from: number, to: number, expected: string): Promise<string> {
  for (let attempt = 0; ; attempt += 1) {
    const digest = digestOf(await ports.reports.sums(from, to));
    if (digest === expected || attempt >= CATCH_UP_ATTEMPTS) return digest;
    await pause(ports.timers, CATCH_UP_DELAY_MS);
  }
}

function usageIn(batch: readonly RecordedEvent[]): SequencedUsage[] {
  return batch.map(asCatalogueEvent).flatMap((event) => (event.type === 'usage.recorded.v2' ? event.data.records.map((record) => ({ record, sequence: event.sequence })) : []));
}

/** sha256 over the sums in canonical order, each as an array so that the order of fields cannot matter. */
function digestOf(sums: readonly UsageSum[]): string {
  const rows = sums.map((sum) => [
    sum.organisationId, sum.projectId, sum.keyId, sum.modelName, sum.requests, sum.promptTokens, sum.cachedTokens, sum.completionTokens, sum.reasoningTokens,
  ]);
  return createHash('sha256').update(JSON.stringify(rows)).digest('hex');
}

function pause(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    timers.after(delayMs, resolve);
  });
}
