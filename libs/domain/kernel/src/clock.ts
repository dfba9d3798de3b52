/** The only source of wall-clock time for everything outside adapters. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
}
