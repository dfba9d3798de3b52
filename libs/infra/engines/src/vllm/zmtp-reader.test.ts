import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { frames, GREETING, READY } from './zmtp-publisher-suite.js';
import { MESSAGE_BYTES_MAX, MESSAGE_PARTS_MAX, ZmtpError, ZmtpReader, type ZmtpItem } from './zmtp-reader.js';

const hello = Buffer.concat([GREETING, READY]);
const readyItem = { kind: 'command', name: 'READY', body: READY.subarray(8) };

describe('the byte stream of a ZMTP peer', () => {
  test('is the same messages however it is cut', () => {
    const message = fc.array(fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes)), { minLength: 1, maxLength: 4 });
    fc.assert(fc.property(fc.array(message, { maxLength: 4 }), fc.array(fc.nat(2_000), { maxLength: 12 }), (messages, cuts) => {
      const stream = Buffer.concat([hello, ...messages.map(frames)]);
      const reader = new ZmtpReader();
      const items: ZmtpItem[] = [];
      let start = 0;
      for (const cut of [...cuts.sort((one, other) => one - other), stream.length]) {
        const end = Math.min(cut, stream.length);
        items.push(...reader.push(stream.subarray(start, end)));
        start = end;
      }
      expect(items).toEqual([readyItem, ...messages.map((parts) => ({ kind: 'message', parts }))]);
    }));
  });

  test('ends at what is no ZMTP 3 with the mechanism NULL', () => {
    const changed = (index: number, value: number): Buffer => {
      const greeting = Buffer.from(GREETING);
      greeting[index] = value;
      return greeting;
    };
    for (const bytes of [Buffer.from('HTTP/1.1 400 Bad Request\r\n'), changed(9, 0), changed(10, 1), changed(12, 0x50)]) expect(() => new ZmtpReader().push(bytes)).toThrow(ZmtpError);
    for (const frame of [[0x08, 0], [0x05, 1, 0], [0x04, 0], [0x04, 1, 9]]) expect(() => new ZmtpReader().push(Buffer.concat([GREETING, Buffer.from(frame)]))).toThrow(ZmtpError);
  });

  test('ends at a message beyond the bounds, before its bytes are there', () => {
    const head = (flags: number, bytes: bigint): Buffer => {
      const buffer = Buffer.alloc(9);
      buffer[0] = flags;
      buffer.writeBigUInt64BE(bytes, 1);
      return buffer;
    };
    for (const bytes of [BigInt(MESSAGE_BYTES_MAX) + 1n, 2n ** 64n - 1n]) expect(() => new ZmtpReader().push(Buffer.concat([hello, head(0x02, bytes)]))).toThrow(ZmtpError);
    const reader = new ZmtpReader();
    reader.push(Buffer.concat([hello, head(0x03, 1_000n), Buffer.alloc(1_000)]));
    expect(() => reader.push(head(0x02, BigInt(MESSAGE_BYTES_MAX) - 999n))).toThrow(ZmtpError);
    expect(() => new ZmtpReader().push(Buffer.concat([hello, frames(Array.from({ length: MESSAGE_PARTS_MAX + 1 }, () => Buffer.alloc(1)))]))).toThrow(ZmtpError);
  });
});
