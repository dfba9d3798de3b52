import type { ApiFault } from '@penstock/contract-http';
import { ObjectStoreUnavailableError } from '@penstock/domain-batching';
import { UsageOutboxFullError } from '@penstock/domain-usage';
import { CommandFailedError, EventLogFullError, EventLogUnavailableError, ServiceUnavailableError, SharedRecordsUnavailableError } from '@penstock/kernel';

/** Ends a request with an error answer. */
export class RequestFault extends Error {
  override readonly name = 'RequestFault';
  constructor(readonly fault: ApiFault, options?: ErrorOptions) {
    super(fault.message, options);
  }
}

const RETRY_AFTER_MS = 1_000;

/** What the caller is told about any error. Only errors that are meant for callers give their words away. */
export function faultOf(error: unknown): ApiFault {
  if (error instanceof RequestFault) return error.fault;
  if (error instanceof ServiceUnavailableError) return unavailable('A service that this request needs does not answer. Requests to models go on; try this one again shortly.');
  if (error instanceof EventLogUnavailableError) return unavailable('The event log does not answer. Nothing was changed; try again shortly.');
  if (error instanceof ObjectStoreUnavailableError) return unavailable('The object store does not answer. Try again shortly.');
  if (error instanceof SharedRecordsUnavailableError) return unavailable('Answers cannot be stored now, so a request that asks for it is not taken. Try again shortly, or send it without Idempotency-Key and respond-async.');
  if (error instanceof UsageOutboxFullError) return unavailable('Usage cannot be recorded now, so no request is taken. Try again shortly.');
  if (error instanceof EventLogFullError) return { code: 'event_log_full', message: error.message };
  if (error instanceof CommandFailedError) return internalFault;
  return faultOfFramework(error) ?? internalFault;
}

export const internalFault: ApiFault = { code: 'internal_error', message: 'The server had an error while processing your request. Retry it, and tell the operator the request id if it fails again.' };

function unavailable(message: string): ApiFault {
  return { code: 'service_unavailable', message, retryAfterMs: RETRY_AFTER_MS };
}

/** Errors of Fastify and of its multipart parser, by their codes. */
function faultOfFramework(error: unknown): ApiFault | undefined {
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  if (typeof code !== 'string' && typeof statusCode !== 'number') return undefined;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE' || code === 'FST_REQ_FILE_TOO_LARGE' || statusCode === 413) return { code: 'body_too_large', message: 'The body of the request is larger than this route takes.' };
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' || code === 'FST_INVALID_MULTIPART_CONTENT_TYPE' || statusCode === 415) return { code: 'unsupported_media_type', message: `Unsupported content type. Send the body as 'application/json', or a file as 'multipart/form-data'.` };
  if (statusCode === 408) return { code: 'request_timeout', message: 'The request did not arrive in time.' };
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) return { code: 'invalid_value', message: 'The request is not well formed. Check its headers, its length and its URL.' };
  return undefined;
}
