import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { UsageRecord } from '@penstock/contract-events';
import { UsageOutboxFullError, type OpenUsage, type OutboxStats, type UsageDraft, type UsageOutbox, type UsageProgress } from '@penstock/domain-usage';
import type { EventLog, Logger } from '@penstock/kernel';
import { AppendFile } from './append-file.js';
import { lockFolder } from './folder-lock.js';
import { ProgressFile } from './progress-file.js';
import { recoverSpool, spoolFileName } from './recover-spool.js';
import { encodeLine, settledLine } from './spool-line.js';
import type { SpoolSegment, UsageEntry, UsageParcel } from './usage-parcel.js';
import { UsagePublisher } from './usage-publisher.js';

/** About 200,000 requests while the event log is away. */
export const SPOOL_BYTES_MAX = 256 * 1_024 * 1_024;
/** A new file begins after this much, so that space comes back in pieces. */
const SEGMENT_BYTES_MAX = 4 * 1_024 * 1_024;
/** Forcing to disk is shared by everything that ends within this time. */
const SYNC_INTERVAL_MS = 25;
/** Progress and confirmations are written down together this often. */
const FLUSH_INTERVAL_MS = 100;

export interface SpoolOptions {
  /** A folder of this gateway alone. */
  readonly folder: string;
  readonly log: EventLog;
  readonly logger: Logger;
  /** CloudEvents source of the records. */
  readonly source?: string | undefined;
  readonly bytesMax?: number | undefined;
  readonly now?: (() => number) | undefined;
}

/** What a request does with the spool. */
interface Deeds {
  written(): Promise<void>;
  noteProgress(requestId: string, progress: UsageProgress): void;
  settle(record: UsageRecord, traceparent: string | undefined): Promise<void>;
}

class OpenedUsage implements OpenUsage {
  constructor(private readonly deeds: Deeds, private readonly requestId: string, private readonly traceparent: string | undefined) {}

  written(): Promise<void> {
    return this.deeds.written();
  }

  progress(progress: UsageProgress): void {
    this.deeds.noteProgress(this.requestId, progress);
  }

  settle(record: UsageRecord): Promise<void> {
    return this.deeds.settle(record, this.traceparent);
  }
}

const nothingToDo = Promise.resolve();

interface Segment extends SpoolSegment {
  readonly file: AppendFile;
  /** What it held when it became the active one. */
  carriedBytes: number;
  /** True once the requests that were open at its end are safe in the next file. */
  isCarriedOver: boolean;
}

/**
 * Usage in append-only files until the event log has it. A request's line is in the kernel before the engine hears of it,
 * its end is forced to disk together with those that end at the same time, and files go once everything in them is confirmed.
 */
export class FileUsageSpool implements UsageOutbox {
  private readonly opened = new Map<string, UsageDraft>();
  private readonly sealed: Segment[] = [];
  private active: Segment;
  private readonly progressFile: ProgressFile;
  private readonly publisher: UsagePublisher;
  private acknowledged: string[] = [];
  /** The next time that everything is forced to disk, for all who wait for it. */
  private nextSync: PromiseWithResolvers<void> | undefined;
  private readonly unsynced = new Set<AppendFile>();
  private isSyncing = false;
  /** Lines that go into the active file with one write, at the end of this turn of the event loop. */
  private pending = '';
  private pendingWrite: { readonly done: Promise<void>; readonly resolve: () => void; readonly reject: (error: unknown) => void } | undefined;
  private flushTimer: NodeJS.Timeout | undefined;

  private readonly deeds: Deeds = {
    written: () => this.written(),
    noteProgress: (requestId, progress) => this.noteProgress(requestId, progress),
    settle: (record, traceparent) => this.settle(record, traceparent),
  };

  private constructor(private readonly options: SpoolOptions, private readonly unlock: () => void, private nextNumber: number) {
    this.active = this.newSegment();
    this.progressFile = new ProgressFile((number) => join(options.folder, spoolFileName('progress', number)), nextNumber);
    this.publisher = new UsagePublisher({
      log: options.log, logger: options.logger, source: options.source ?? 'penstock/gateway', onJoined: (ids) => this.noteJoined(ids), onPublished: (parcel) => this.confirm(parcel),
    });
  }

  /**
   * Takes over the folder, settles what a dead process left open, and starts publishing. Throws `FolderLockedError` when
   * a living process uses the folder.
   */
  static async open(options: SpoolOptions): Promise<FileUsageSpool> {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    const unlock = lockFolder(options.folder);
    const recovered = recoverSpool(options.folder, options.now?.() ?? Date.now());
    const spool = new FileUsageSpool(options, unlock, recovered.nextNumber);
    const entries = new Map(recovered.records.map((record) => [record.requestId, spool.recover(record)]));
    for (const ids of recovered.joined) spool.noteJoined(ids);
    await spool.sync();
    for (const path of recovered.paths) rmSync(path, { force: true });
    spool.publishAgain(entries, recovered.joined);
    if (recovered.records.length > 0 || recovered.damaged > 0) {
      options.logger.info({ records: recovered.records.length, interrupted: recovered.interrupted, damagedLines: recovered.damaged }, 'usage of an earlier process recovered');
    }
    return spool;
  }

  open(draft: UsageDraft, traceparent?: string): OpenUsage {
    const { bytes, bytesMax } = this.stats();
    if (bytes >= bytesMax) throw new UsageOutboxFullError(`${bytes} bytes wait for the event log, the limit is ${bytesMax}`);
    this.append(encodeLine({ t: 'open', draft }));
    this.opened.set(draft.requestId, draft);
    return new OpenedUsage(this.deeds, draft.requestId, traceparent);
  }

  async drain(timeoutMs: number): Promise<void> {
    this.flush();
    await this.sync();
    await this.publisher.idle(timeoutMs);
    this.flush();
    this.writePending();
    await this.sync();
  }

  stats(): OutboxStats {
    const bytes = this.sealed.reduce((sum, segment) => sum + segment.file.bytes, this.active.file.bytes + this.progressFile.bytes + this.pending.length);
    return { openRequests: this.opened.size, unpublished: this.publisher.unpublished, bytes, bytesMax: this.options.bytesMax ?? SPOOL_BYTES_MAX };
  }

  /** Stops publishing and lets go of the folder. What is not confirmed is published by whoever opens the folder next. */
  async close(): Promise<void> {
    this.publisher.stop();
    clearTimeout(this.flushTimer);
    this.flush();
    this.writePending();
    await this.sync();
    const isEmpty = this.opened.size === 0 && this.publisher.unpublished === 0;
    for (const { file } of [...this.sealed, this.active]) isEmpty ? file.remove() : file.close();
    this.progressFile.close(isEmpty);
    this.unlock();
  }

  private settle(record: UsageRecord, traceparent: string | undefined): Promise<void> {
    if (!this.opened.has(record.requestId)) return nothingToDo;
    const json = this.writeSettled(record);
    this.publisher.add({ record, json, mayJoin: true, traceparent, segment: this.active });
    return this.sync();
  }

  private recover(record: UsageRecord): UsageEntry {
    this.writeSettled(record);
    return { record, json: undefined, mayJoin: false, traceparent: undefined, segment: this.active };
  }

  /** What an earlier process may have sent: in the same company, or alone. */
  private publishAgain(entries: ReadonlyMap<string, UsageEntry>, joined: readonly (readonly string[])[]): void {
    const alone = new Map(entries);
    for (const ids of joined) {
      this.publisher.addJoined(ids.flatMap((id) => alone.get(id) ?? []));
      for (const id of ids) alone.delete(id);
    }
    for (const entry of alone.values()) this.publisher.add(entry);
  }

  /** In the kernel before the event goes out, so that a repeat after a crash is the same event. */
  private noteJoined(ids: readonly string[]): void {
    try {
      this.append(encodeLine({ t: 'join', ids }));
      this.writePending();
    } catch (error) {
      // After a crash each of them goes alone then, and sinks count a request id once.
      this.options.logger.warn({ err: error }, 'the company of usage records could not be written to the spool');
    }
  }

  /** Returns the record as JSON. */
  private writeSettled(record: UsageRecord): string {
    this.opened.delete(record.requestId);
    this.progressFile.forget(record.requestId);
    // Should it not be written, it still goes out from memory; only a crash before the event log has it would make it an interrupted one.
    const json = JSON.stringify(record);
    this.append(settledLine(json));
    this.active.unconfirmed += 1;
    return json;
  }

  private confirm(parcel: UsageParcel): void {
    for (const { record, segment } of parcel) {
      segment.unconfirmed -= 1;
      this.acknowledged.push(record.requestId);
    }
    this.scheduleFlush();
    this.removeConfirmed();
  }

  private noteProgress(requestId: string, progress: UsageProgress): void {
    if (!this.opened.has(requestId)) return;
    this.progressFile.note(requestId, progress);
    this.scheduleFlush();
  }

  private scheduleFlush(): void {
    this.flushTimer ??= setTimeout(() => this.flush(), FLUSH_INTERVAL_MS).unref();
  }

  private flush(): void {
    clearTimeout(this.flushTimer);
    this.flushTimer = undefined;
    const ids = this.acknowledged;
    this.acknowledged = [];
    try {
      this.progressFile.flush();
      if (ids.length > 0) this.append(encodeLine({ t: 'ack', ids }));
    } catch (error) {
      // It only saves work after a crash: without it a little less is known.
      this.options.logger.warn({ err: error }, 'progress of usage could not be written to the spool');
    }
  }

  private append(text: string): void {
    if (this.active.file.bytes - this.active.carriedBytes > SEGMENT_BYTES_MAX) {
      this.writePending();
      this.rotate();
    }
    this.pending += text;
    this.unsynced.add(this.active.file);
    if (this.pendingWrite !== undefined) return;
    const write = Promise.withResolvers<void>();
    // Not everybody waits for it; whoever has to know does.
    write.promise.catch(() => undefined);
    this.pendingWrite = { done: write.promise, resolve: write.resolve, reject: write.reject };
    setImmediate(() => this.writePending());
  }

  private written(): Promise<void> {
    return this.pendingWrite?.done ?? nothingToDo;
  }

  /** Hands what gathered to the kernel, where it survives this process. */
  private writePending(): void {
    const write = this.pendingWrite;
    if (write === undefined) return;
    const text = this.pending;
    this.pending = '';
    this.pendingWrite = undefined;
    try {
      this.active.file.append(text);
      write.resolve();
    } catch (error) {
      this.options.logger.error({ err: error }, 'usage could not be written to the spool');
      write.reject(new UsageOutboxFullError('the disk of the usage spool takes no more', { cause: error }));
    }
  }

  /** Starts a new file with the requests that are still open, so that the old one waits for confirmations alone. */
  private rotate(): void {
    const next = this.newSegment();
    let carried = '';
    for (const draft of this.opened.values()) carried += encodeLine({ t: 'open', draft });
    if (carried !== '') next.file.append(carried);
    next.carriedBytes = next.file.bytes;
    this.unsynced.add(next.file);
    const full = this.active;
    this.sealed.push(full);
    this.active = next;
    const carriedOver = (): void => {
      full.isCarriedOver = true;
      this.removeConfirmed();
    };
    this.sync().then(carriedOver, () => undefined);
  }

  /** Oldest first and none before its elders: a confirmation must not go before what it confirms. */
  private removeConfirmed(): void {
    while (this.sealed[0]?.unconfirmed === 0 && this.sealed[0].isCarriedOver) this.sealed.shift()?.file.remove();
  }

  private newSegment(): Segment {
    const file = new AppendFile(join(this.options.folder, spoolFileName('segment', this.nextNumber)));
    this.nextNumber += 1;
    return { file, unconfirmed: 0, carriedBytes: 0, isCarriedOver: false };
  }

  /** Everything appended before the call is on disk when it resolves; calls that come meanwhile share the next pass. */
  private sync(): Promise<void> {
    if (this.unsynced.size === 0 && !this.isSyncing) return nothingToDo;
    if (this.nextSync === undefined) {
      this.nextSync = Promise.withResolvers<void>();
      // Nearly nobody waits for it, and it is logged here for all of them.
      this.nextSync.promise.catch((error: unknown) => this.options.logger.error({ err: error }, 'usage could not be forced to disk'));
    }
    const { promise } = this.nextSync;
    if (!this.isSyncing) void this.runSync();
    return promise;
  }

  private async runSync(): Promise<void> {
    this.isSyncing = true;
    while (this.nextSync !== undefined) {
      await pause(SYNC_INTERVAL_MS);
      this.writePending();
      const waiters = this.nextSync;
      this.nextSync = undefined;
      const files = [...this.unsynced];
      this.unsynced.clear();
      try {
        await Promise.all(files.map((file) => file.sync()));
        waiters.resolve();
      } catch (error) {
        for (const file of files) this.unsynced.add(file);
        waiters.reject(error);
      }
    }
    this.isSyncing = false;
  }
}
