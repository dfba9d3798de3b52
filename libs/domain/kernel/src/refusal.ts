/** Why a command was not carried out: an expected outcome, returned and never thrown. */
export interface Refusal {
  /** A stable code from the catalogue in `@penstock/contract-http`, such as `endpoint_not_found`. */
  readonly code: string;
  /** What is wrong and what to do next, for the person who asked. */
  readonly message: string;
  /** The field at fault, as a path such as `hardware.gpu_count`. */
  readonly param?: string | undefined;
  /** When a retry makes sense: how long to wait, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
}
