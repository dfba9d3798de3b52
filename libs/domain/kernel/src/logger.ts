/** Structured fields of one log line. Never put a prompt, an answer, a key or a secret here. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Structured logging without a choice of library. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  child(fields: LogFields): Logger;
}

/** A logger that drops everything, for tests and tools. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
