import type { AsyncResponseBody } from '@penstock/contract-http';
import type { AnswerHead } from './answer-head.js';

/** A stored answer inside JSON: as JSON or text where it is that, and bytes as base64. */
export function storedBody({ status, headers }: AnswerHead, body: Buffer): NonNullable<AsyncResponseBody['response']> {
  const contentType = headers['content-type'] ?? '';
  const headLength = headers['inference-header-content-length'];
  const isBinary = contentType.startsWith('application/octet-stream');
  const text = body.toString(isBinary ? 'base64' : 'utf8');
  return {
    status_code: status ?? 500, content_type: contentType, is_base64: isBinary, ...(headLength === undefined ? {} : { inference_header_content_length: Number(headLength) }),
    body: contentType.startsWith('application/json') ? JSON.parse(text) as unknown : text,
  };
}
