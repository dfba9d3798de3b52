import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { HEAD_BYTES_MAX, MalformedResponseError, ResponseParser } from './response-parser.js';

interface Read {
  status: number;
  body: string;
  completions: number;
  keepsAlive: boolean;
}

/** Pushes the answer in pieces that end at the given places. */
function read(answer: Buffer, cuts: readonly number[], closes = false): Read {
  const result: Read = { status: 0, body: '', completions: 0, keepsAlive: false };
  const parts: Buffer[] = [];
  const parser = new ResponseParser({ onHead: (status) => (result.status = status), onBody: (bytes) => parts.push(Buffer.from(bytes)), onComplete: () => (result.completions += 1) });
  let from = 0;
  for (const cut of [...cuts].sort((left, right) => left - right)) {
    const to = Math.min(answer.length, cut);
    if (to <= from) continue;
    parser.push(answer.subarray(from, to));
    from = to;
  }
  if (from < answer.length) parser.push(answer.subarray(from));
  if (closes) parser.end();
  result.body = Buffer.concat(parts).toString();
  result.keepsAlive = parser.keepsAlive;
  return result;
}

const body = fc.string({ unit: 'grapheme', maxLength: 60 });
const cuts = fc.array(fc.nat(400), { maxLength: 30 });
const interim = fc.constantFrom('', 'HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n');
const chunked = (pieces: readonly string[], extension: string, trailer: string): string =>
  `${pieces.filter((piece) => piece !== '').map((piece) => `${Buffer.byteLength(piece).toString(16)}${extension}\r\n${piece}\r\n`).join('')}0\r\n${trailer}\r\n`;

describe('an answer reads the same however it was cut', () => {
  test('with a length', () => {
    fc.assert(fc.property(body, interim, cuts, (text, before, places) => {
      const answer = Buffer.from(`${before}HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
      expect(read(answer, places)).toEqual({ status: 200, body: text, completions: 1, keepsAlive: true });
    }));
  });

  test('in chunks, with extensions and trailers', () => {
    fc.assert(fc.property(fc.array(body, { maxLength: 6 }), interim, cuts, fc.constantFrom('', ';a=b', ' '), fc.constantFrom('', 'x-checksum: 1\r\n'), (pieces, before, places, extension, trailer) => {
      const answer = Buffer.from(`${before}HTTP/1.1 503 Busy\r\nTRANSFER-ENCODING: chunked\r\nconnection: close\r\n\r\n${chunked(pieces, extension, trailer)}`);
      expect(read(answer, places)).toEqual({ status: 503, body: pieces.join(''), completions: 1, keepsAlive: false });
    }));
  });

  test('until the connection closes', () => {
    fc.assert(fc.property(body, cuts, (text, places) => {
      const answer = Buffer.from(`HTTP/1.0 200 OK\r\n\r\n${text}`);
      expect(read(answer, places, true)).toEqual({ status: 200, body: text, completions: 1, keepsAlive: false });
    }));
  });

  test('without a body', () => {
    expect(read(Buffer.from('HTTP/1.1 204 No Content\r\n\r\n'), [])).toEqual({ status: 204, body: '', completions: 1, keepsAlive: true });
  });
});

describe('what is no clear answer is refused', () => {
  const ok = 'HTTP/1.1 200 OK\r\n';
  test.each([
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
    ['another protocol', 'HTTP/1.1 101 Switching\r\n\r\n'],
    ['two lengths', `${ok}content-length: 1\r\ncontent-length: 2\r\n\r\nab`],
    ['a length and chunks', `${ok}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['another encoding', `${ok}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ['a negative length', `${ok}content-length: -1\r\n\r\n`],
    ['a folded header', `${ok}x-a: 1\r\n folded\r\n\r\n`],
    ['a space before the colon', `${ok}content-length : 1\r\n\r\na`],
    ['a chunk size that is no number', `${ok}transfer-encoding: chunked\r\n\r\nzz\r\n`],
    ['a chunk that is longer than it says', `${ok}transfer-encoding: chunked\r\n\r\n1\r\nabc\r\n`],
    ['bytes after the end', `${ok}content-length: 1\r\n\r\nabc`],
    ['an endless head', `${ok}x: ${'a'.repeat(HEAD_BYTES_MAX)}`],
    ['an endless chunk line', `${ok}transfer-encoding: chunked\r\n\r\n1;${'a'.repeat(2_000)}`],
  ])('%s', (_name, answer) => {
    expect(() => read(Buffer.from(answer), [])).toThrow(MalformedResponseError);
  });

  test('random bytes never do anything but that', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), cuts, fc.boolean(), (bytes, places, begins) => {
      try {
        read(Buffer.concat([Buffer.from(begins ? `${ok}transfer-encoding: chunked\r\n\r\n` : ''), bytes]), places);
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedResponseError);
      }
    }));
  });
});
