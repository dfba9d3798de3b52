/** One entry per thing that can go wrong, in the words of the field. Statuses and types are those of OpenAI's API where it has the case. */
export interface ErrorDescriptor {
  readonly status: number;
  /** OpenAI's `error.type`. */
  readonly type: 'invalid_request_error' | 'authentication_error' | 'permission_error' | 'rate_limit_error' | 'insufficient_quota' | 'requests' | 'tokens' | 'server_error';
  /** Whether the same request may succeed later; becomes `x-should-retry`. */
  readonly retryable: boolean;
}

export const errorCatalogue = {
  invalid_api_key: { status: 401, type: 'invalid_request_error', retryable: false },
  missing_api_key: { status: 401, type: 'invalid_request_error', retryable: false },
  expired_api_key: { status: 401, type: 'invalid_request_error', retryable: false },
  insufficient_permissions: { status: 403, type: 'invalid_request_error', retryable: false },
  model_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  unknown_url: { status: 404, type: 'invalid_request_error', retryable: false },
  method_not_allowed: { status: 405, type: 'invalid_request_error', retryable: false },
  invalid_json: { status: 400, type: 'invalid_request_error', retryable: false },
  invalid_type: { status: 400, type: 'invalid_request_error', retryable: false },
  invalid_value: { status: 400, type: 'invalid_request_error', retryable: false },
  missing_required_parameter: { status: 400, type: 'invalid_request_error', retryable: false },
  empty_array: { status: 400, type: 'invalid_request_error', retryable: false },
  integer_below_min_value: { status: 400, type: 'invalid_request_error', retryable: false },
  integer_above_max_value: { status: 400, type: 'invalid_request_error', retryable: false },
  unsupported_value: { status: 400, type: 'invalid_request_error', retryable: false },
  unsupported_parameter: { status: 400, type: 'invalid_request_error', retryable: false },
  unsupported_operation: { status: 400, type: 'invalid_request_error', retryable: false },
  unknown_parameter: { status: 400, type: 'invalid_request_error', retryable: false },
  json_too_deep: { status: 400, type: 'invalid_request_error', retryable: false },
  context_length_exceeded: { status: 400, type: 'invalid_request_error', retryable: false },
  request_rejected_by_engine: { status: 400, type: 'invalid_request_error', retryable: false },
  unsupported_media_type: { status: 415, type: 'invalid_request_error', retryable: false },
  body_too_large: { status: 413, type: 'invalid_request_error', retryable: false },
  request_timeout: { status: 408, type: 'invalid_request_error', retryable: true },
  conflict: { status: 409, type: 'invalid_request_error', retryable: true },
  already_exists: { status: 400, type: 'invalid_request_error', retryable: false },
  endpoint_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  batch_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  file_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  upload_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  response_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  invalid_file: { status: 400, type: 'invalid_request_error', retryable: false },
  queue_full: { status: 429, type: 'requests', retryable: true },
  queue_timeout: { status: 429, type: 'requests', retryable: true },
  rate_limit_exceeded: { status: 429, type: 'requests', retryable: true },
  idempotency_key_reused: { status: 422, type: 'invalid_request_error', retryable: false },
  idempotent_answer_not_stored: { status: 422, type: 'invalid_request_error', retryable: false },
  request_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  async_not_found: { status: 404, type: 'invalid_request_error', retryable: false },
  insufficient_quota: { status: 429, type: 'insufficient_quota', retryable: false },
  reservation_refused: { status: 409, type: 'invalid_request_error', retryable: false },
  model_loading: { status: 503, type: 'server_error', retryable: true },
  no_capacity: { status: 503, type: 'server_error', retryable: true },
  replica_failed: { status: 502, type: 'server_error', retryable: true },
  engine_timeout: { status: 504, type: 'server_error', retryable: true },
  total_timeout: { status: 504, type: 'server_error', retryable: false },
  inference_failed: { status: 500, type: 'server_error', retryable: false },
  engine_response_invalid: { status: 502, type: 'server_error', retryable: true },
  service_unavailable: { status: 503, type: 'server_error', retryable: true },
  shutting_down: { status: 503, type: 'server_error', retryable: true },
  event_log_full: { status: 507, type: 'server_error', retryable: false },
  internal_error: { status: 500, type: 'server_error', retryable: true },
} as const satisfies Record<string, ErrorDescriptor>;

export type ErrorCode = keyof typeof errorCatalogue;

/** The descriptor of a code that may come from another service; an unknown code counts as `internal_error`. */
export function describeError(code: string): ErrorDescriptor & { readonly code: string } {
  const known = errorCatalogue[code as ErrorCode] as ErrorDescriptor | undefined;
  return known === undefined ? { ...errorCatalogue.internal_error, code: 'internal_error' } : { ...known, code };
}
