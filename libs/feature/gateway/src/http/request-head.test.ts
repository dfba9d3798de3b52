import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readRequestHead } from './request-head.js';

const HEAD = 'POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2';

test('reads a plain POST, and names in any case', () => {
  expect(readRequestHead(`${HEAD}\r\nX-A:  b c \t\r\nauthorization:Bearer x`)).toEqual({
    path: '/v1/chat/completions', contentLength: 2,
    headers: { host: 'a', 'content-type': 'application/json', 'content-length': '2', 'x-a': 'b c', authorization: 'Bearer x' },
  });
});

test.each([
  ['another method', HEAD.replace('POST', 'GET')],
  ['another version', HEAD.replace('1.1', '1.0')],
  ['no host', HEAD.replace('Host', 'Hos')],
  ['no length', HEAD.replace('Length', 'Lengt')],
  ['a signed length', HEAD.replace(': 2', ': +2')],
  ['a length with a blank that no field may have', HEAD.replace(': 2', ': 2\u00a0')],
  ['a length twice', `${HEAD}\r\nContent-Length: 2`],
  ['two lengths in one', HEAD.replace(': 2', ': 2, 2')],
  ['a transfer encoding', `${HEAD}\r\nTransfer-Encoding: chunked`],
  ['an expectation', `${HEAD}\r\nExpect: 100-continue`],
  ['a connection that is to end', `${HEAD}\r\nConnection: close`],
  ['a header twice', `${HEAD}\r\nX-A: 1\r\nx-a: 2`],
  ['a folded header', `${HEAD}\r\nX-A: 1\r\n 2`],
  ['a space before the colon', `${HEAD}\r\nX-A : 1`],
  ['a header without a name', `${HEAD}\r\n: 1`],
  ['a line without a colon', `${HEAD}\r\nX-A`],
  ['an empty line', `${HEAD}\r\n\r\nX-A: 1`],
  ['a bare line feed', `${HEAD}\r\nX-A: 1\nX-B: 2`],
  ['a bare carriage return', `${HEAD}\r\nX-A: 1\rX-B: 2`],
  ['a carriage return at the end', `${HEAD}\r\nX-A: 1\r`],
  ['a NUL', `${HEAD}\r\nX-A: 1\u0000`],
  ['a name that objects have', `${HEAD}\r\n__proto__: 1`],
])('leaves %s to Node', (_name, head) => {
  expect(readRequestHead(head)).toBeUndefined();
});

describe('against the parser of Node', () => {
  let seen: { url: string; headers: IncomingHttpHeaders } | undefined;
  const server = createServer((request, response) => {
    seen = { url: request.url ?? '', headers: request.headers };
    response.end();
  });
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  async function readByNode(head: string): Promise<typeof seen> {
    seen = undefined;
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    socket.write(Buffer.from(`${head}\r\n\r\n`, 'latin1'));
    await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    socket.destroy();
    return seen;
  }

  const piece = fc.constantFrom('\r\n', '\r', '\n', ':', ' ', '\t', 'Host: a', 'content-length: 0', 'transfer-encoding: chunked', 'x-a: b', 'x-b:', 'é', '\u0000', ',', '"', 'connection: keep-alive', '/', 'POST / HTTP/1.1');

  test('whatever is read here is read by Node in the same way', async () => {
    await fc.assert(fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
      const head = `POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 0${pieces.join('')}`;
      const read = readRequestHead(head);
      if (read === undefined) return;
      expect(await readByNode(head)).toEqual({ url: read.path, headers: read.headers });
    }), { numRuns: 300 });
  });
});
