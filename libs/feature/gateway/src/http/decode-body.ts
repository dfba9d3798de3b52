import { createGunzip, createZstdDecompress } from 'node:zlib';
import type { IncomingHttpHeaders } from 'node:http';
import { Transform, type TransformCallback } from 'node:stream';
import type { RequestPayload } from 'fastify';
import { RequestFault } from './request-fault.js';

/** Encodings that clients send bodies in. */
const DECODERS: Readonly<Record<string, () => Transform>> = { gzip: () => createGunzip(), 'x-gzip': () => createGunzip(), zstd: () => createZstdDecompress() };

/**
 * The body as it was before the client compressed it. It may have `bytesMax` bytes then, however few arrive; with 0 only plain
 * bodies are taken. Throws a {@link RequestFault} for an encoding that is not taken; the stream fails with one for a body that is
 * damaged or too large.
 */
export function decodeBody(headers: IncomingHttpHeaders, payload: RequestPayload, bytesMax: number): RequestPayload {
  const encoding = headers['content-encoding']?.trim().toLowerCase();
  if (encoding === undefined || encoding === '' || encoding === 'identity') return payload;
  const decoder = Object.hasOwn(DECODERS, encoding) && bytesMax > 0 ? DECODERS[encoding]?.() : undefined;
  if (decoder === undefined) {
    const taken = bytesMax > 0 ? `Supported encodings are: ${Object.keys(DECODERS).join(', ')}.` : 'Send the body as it is.';
    throw new RequestFault({ code: 'unsupported_media_type', message: `The content encoding '${encoding.slice(0, 40)}' is not taken. ${taken}` });
  }
  const body = new DecodedBody(encoding, bytesMax);
  payload.on('data', (chunk: Buffer) => {
    body.receivedEncodedLength += chunk.length;
  });
  payload.on('error', (error) => body.destroy(error));
  decoder.on('error', () => body.destroy(new RequestFault({ code: 'invalid_value', message: `The body is not valid ${encoding}. Compress it as the content encoding says, or send it plain.` })));
  // The rest of a body that failed is let through to nowhere: closing its connection would take the answer along.
  body.once('close', () => {
    payload.unpipe(decoder);
    payload.resume();
    decoder.destroy();
  });
  payload.pipe(decoder).pipe(body);
  return body;
}

/** Ends a body that outgrows its limit while it is unpacked, so that a small bomb costs no more than the limit. */
class DecodedBody extends Transform {
  /** Bytes that arrived: what the content length speaks of. */
  receivedEncodedLength = 0;
  private bytes = 0;

  constructor(private readonly encoding: string, private readonly bytesMax: number) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.bytes += chunk.length;
    if (this.bytes <= this.bytesMax) callback(null, chunk);
    else callback(new RequestFault({ code: 'body_too_large', message: `The body is larger than this route takes once its ${this.encoding} is unpacked: at most ${this.bytesMax} bytes.` }));
  }
}
