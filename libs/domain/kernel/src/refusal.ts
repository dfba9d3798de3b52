/** The limit that a request met, with the numbers at that moment, so that a refusal can be understood without asking. */
export interface LimitMet {
  /** What is limited, such as `requests_per_minute` or `queue`. */
  readonly name: string;
  /** Whose limit it is, in words. */
  readonly scope: string;
  readonly limit: number;
  /** How much of it is taken now. */
  readonly used: number;
  /** How much the request would have taken; left out where that is one. */
  readonly requested?: number | undefined;
}

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
  readonly limit?: LimitMet | undefined;
}
