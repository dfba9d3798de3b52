import { createHash } from 'node:crypto';
import type { MultipartFile } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import type { ObjectStore } from '@penstock/domain-batching';
import { RequestFault } from '../http/request-fault.js';

export interface Upload {
  readonly filename: string;
  readonly bytes: number;
  readonly digest: string;
  readonly fields: ReadonlyMap<string, string>;
}

const FILENAME_LENGTH_MAX = 255;

export interface UploadForm {
  /** The field of the form that holds the bytes. */
  readonly field: string;
  readonly bytesMax: number;
}

/** Streams the file of a form into the object store and reads the fields around it, in whatever order they come. */
export async function receiveUpload(request: FastifyRequest, objects: ObjectStore, objectKey: string, { field, bytesMax }: UploadForm = { field: 'file', bytesMax: Infinity }): Promise<Upload> {
  const fields = new Map<string, string>();
  let file: Omit<Upload, 'fields'> | undefined;
  for await (const part of wellFormed(request.parts())) {
    if (part.type === 'field') {
      fields.set(part.fieldname, typeof part.value === 'string' ? part.value : '');
    } else if (part.fieldname === field && file === undefined) {
      file = await storeFile(part, objects, objectKey, bytesMax);
    } else {
      part.file.resume();
    }
  }
  if (file === undefined) throw new RequestFault({ code: 'missing_required_parameter', message: `Missing required parameter: '${field}'.`, param: field });
  return { ...file, fields };
}

/** Whatever the parser of forms objects to lies in what the client sent. */
async function* wellFormed<Part>(parts: AsyncIterable<Part>): AsyncGenerator<Part> {
  try {
    yield* parts;
  } catch (error) {
    if (!(error instanceof Error) || error.name === 'RequestFault' || (error as { statusCode?: unknown }).statusCode !== undefined) throw error;
    throw new RequestFault({ code: 'invalid_value', message: 'The form is not well formed, or ends too early. Send it again as multipart/form-data.' }, { cause: error });
  }
}

async function storeFile(part: MultipartFile, objects: ObjectStore, objectKey: string, bytesMax: number): Promise<Omit<Upload, 'fields'>> {
  const hash = createHash('sha256');
  let bytes = 0;
  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of wellFormed(part.file as AsyncIterable<Buffer>)) {
      hash.update(chunk);
      bytes += chunk.length;
      if (bytes > bytesMax) throw tooLarge(part.fieldname);
      yield chunk;
    }
    // The parser ends a file that is too large as if it were whole.
    if (part.file.truncated) throw tooLarge(part.fieldname);
  }
  await objects.put(objectKey, hashed());
  return { filename: safeFilename(part.filename), bytes, digest: `sha256:${hash.digest('hex')}` };
}

function tooLarge(param: string): RequestFault {
  return new RequestFault({ code: 'body_too_large', message: 'The file is larger than this route takes. Split it.', param });
}

/** The last part of whatever path a client sends, without control characters. */
function safeFilename(given: string): string {
  const name = (given.split(/[/\\]/).at(-1) ?? '').replace(/[\u0000-\u001f\u007f]/g, '').slice(0, FILENAME_LENGTH_MAX);
  return name === '' || name === '.' || name === '..' ? 'upload' : name;
}
