import { SharedRecordsUnavailableError, type SharedRecord, type SharedRecords } from '@penstock/kernel';

/** Shared records inside one process. */
export class MemorySharedRecords implements SharedRecords {
  private readonly records = new Map<string, SharedRecord>();
  private revision = 0;
  /** Set by a test to make every call fail. */
  isDown = false;

  get(key: string): Promise<SharedRecord | undefined> {
    return this.answer(() => this.records.get(key));
  }

  create(key: string, value: Uint8Array): Promise<number | undefined> {
    return this.answer(() => (this.records.has(key) ? undefined : this.write(key, value)));
  }

  update(key: string, value: Uint8Array, revision: number): Promise<number | undefined> {
    return this.answer(() => (this.records.get(key)?.revision === revision ? this.write(key, value) : undefined));
  }

  put(key: string, value: Uint8Array): Promise<void> {
    return this.answer(() => void this.write(key, value));
  }

  delete(key: string): Promise<void> {
    return this.answer(() => void this.records.delete(key));
  }

  private write(key: string, value: Uint8Array): number {
    this.revision += 1;
    this.records.set(key, { value: Uint8Array.from(value), revision: this.revision });
    return this.revision;
  }

  private answer<Value>(work: () => Value): Promise<Value> {
    return this.isDown ? Promise.reject(new SharedRecordsUnavailableError('the test says so')) : Promise.resolve(work());
  }
}
