import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { SharedRecords } from '@penstock/kernel';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (value: Uint8Array | undefined): string => new TextDecoder().decode(value);

/** What every implementation of {@link SharedRecords} must do. Keys are unique per run, so that one store may be used again. */
export function sharedRecordsSuite(name: string, open: () => Promise<{ readonly records: SharedRecords; close(): Promise<void> }>): void {
  let opened: { readonly records: SharedRecords; close(): Promise<void> };
  let count = 0;
  const key = (): string => `suite.${Date.now()}-${(count += 1)}`;

  describe(`${name} as shared records`, () => {
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());

    test('keeps what was written, and knows nothing of what was not', async () => {
      const { records } = opened;
      const name = key();
      expect(await records.get(name)).toBeUndefined();
      await records.put(name, bytes('one'));
      expect(text((await records.get(name))?.value)).toBe('one');
      await records.delete(name);
      expect(await records.get(name)).toBeUndefined();
    });

    test('of many that create the same record, one succeeds; it can be made again once it is gone', async () => {
      const { records } = opened;
      const name = key();
      const made = await Promise.all(Array.from({ length: 20 }, (_, index) => records.create(name, bytes(String(index)))));
      expect(made.filter((revision) => revision !== undefined)).toHaveLength(1);
      await records.delete(name);
      expect(await records.create(name, bytes('again'))).toBeDefined();
    });

    test('an update needs the revision that stands there', async () => {
      const { records } = opened;
      const name = key();
      const first = await records.create(name, bytes('one')) ?? -1;
      const second = await records.update(name, bytes('two'), first);
      expect(second).toBeDefined();
      expect(await records.update(name, bytes('three'), first)).toBeUndefined();
      expect(text((await records.get(name))?.value)).toBe('two');
      expect((await records.get(name))?.revision).toBe(second);
    });
  });
}
