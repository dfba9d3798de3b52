import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { UsageRecord } from '@penstock/contract-events';
import { interruptedUsage, type UsageDraft, type UsageProgress } from '@penstock/domain-usage';
import { decodeLines } from './spool-line.js';

export interface RecoveredSpool {
  /** Records that the event log may not have: settled ones, and those that the dead process left open. */
  readonly records: readonly UsageRecord[];
  /** Those of them that were to go out as one event, by request id. */
  readonly joined: readonly (readonly string[])[];
  readonly interrupted: number;
  readonly damaged: number;
  /** Files whose content is in `records` now. */
  readonly paths: readonly string[];
  readonly nextNumber: number;
}

const FILE_PATTERN = /^(segment|progress)-(\d{12})\.jsonl$/;

export function spoolFileName(kind: 'segment' | 'progress', number: number): string {
  return `${kind}-${String(number).padStart(12, '0')}.jsonl`;
}

/** Reads what an earlier process left in the folder. Changes nothing. */
export function recoverSpool(folder: string, nowMs: number): RecoveredSpool {
  const names = readdirSync(folder).filter((name) => FILE_PATTERN.test(name)).sort();
  const opened = new Map<string, UsageDraft>();
  const progress = new Map<string, UsageProgress>();
  const settled = new Map<string, UsageRecord>();
  const acknowledged = new Set<string>();
  /** By the first of them: told again by a process that died while it took over. */
  const joined = new Map<string, readonly string[]>();
  let damaged = 0;
  for (const name of names) {
    const decoded = decodeLines(readFileSync(join(folder, name), 'utf8'));
    damaged += decoded.damaged;
    for (const line of decoded.lines) {
      if (line.t === 'open') opened.set(line.draft.requestId, line.draft);
      else if (line.t === 'progress') progress.set(line.id, line.progress);
      else if (line.t === 'settle') settled.set(line.record.requestId, settled.get(line.record.requestId) ?? line.record);
      else if (line.t === 'join') joined.set(line.ids[0] ?? '', line.ids);
      else for (const id of line.ids) acknowledged.add(id);
    }
  }
  const interrupted = [...opened.values()].filter(({ requestId }) => !settled.has(requestId) && !acknowledged.has(requestId))
    .map((draft) => interruptedUsage(draft, progress.get(draft.requestId), nowMs));
  const unsent = [...settled.values()].filter(({ requestId }) => !acknowledged.has(requestId));
  const unsentIds = new Set(unsent.map(({ requestId }) => requestId));
  const numbers = names.map((name) => Number(FILE_PATTERN.exec(name)?.[2] ?? 0));
  // Of a company that is not whole each goes alone: without the others it would be another event.
  const whole = [...joined.values()].filter((ids) => ids.every((id) => unsentIds.has(id)));
  return { records: [...unsent, ...interrupted], joined: whole, interrupted: interrupted.length, damaged, paths: names.map((name) => join(folder, name)), nextNumber: Math.max(0, ...numbers) + 1 };
}
