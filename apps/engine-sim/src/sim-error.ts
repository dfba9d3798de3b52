/** An answer that is an error, with the exact body that vLLM gives. */
export class SimError extends Error {
  override readonly name = 'SimError';
  constructor(readonly status: number, readonly body: unknown) {
    super(JSON.stringify(body));
  }
}

export function errorBody(message: string, type: string, param: string | null, code: number): unknown {
  return { error: { message, type, param, code } };
}

/** A request whose meaning is wrong. */
export function badRequest(message: string, param: string | null = null): SimError {
  return new SimError(400, errorBody(message, 'BadRequestError', param, 400));
}

/** A request whose shape is wrong: vLLM's validator spells the type with a space. */
export function invalidShape(message: string, param: string): SimError {
  return new SimError(400, errorBody(message, 'Bad Request', param, 400));
}

export const engineDiedBody = errorBody('EngineCore encountered an issue. See stack trace (above) for the root cause.', 'InternalServerError', null, 500);

export const engineBusyBody = errorBody(
  'The engine is currently busy and cannot accept new requests. Please try again later or on a different instance.', 'Service Unavailable', null, 503,
);
