import type { LogFields, Logger } from '@penstock/kernel';
import { destination, pino, stdSerializers, type Logger as Pino } from 'pino';

/** Field names whose values never reach a log line, wherever they stand one or two levels deep. */
const SECRET_FIELDS = ['authorization', 'apiKey', 'api_key', 'password', 'secret', 'token', 'pepper', 'prompt', 'messages', 'content', 'cookie'];

export interface PinoLoggerOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  /** A file to append to; standard error when left out, so that standard output stays free for results. */
  readonly file?: string | undefined;
}

/** Structured JSON lines through pino, written off the hot path. */
export function createPinoLogger(options: PinoLoggerOptions): Logger {
  const sink = destination({ dest: options.file ?? 2, sync: false, minLength: 0, mkdir: true, append: true });
  const paths = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]);
  const logger = pino({ level: options.level, base: null, serializers: { err: stdSerializers.err }, redact: { paths, censor: '[redacted]' }, timestamp: pino.stdTimeFunctions.isoTime }, sink);
  return new PinoLogger(logger);
}

class PinoLogger implements Logger {
  constructor(private readonly pino: Pino) {}

  debug(fields: LogFields, message: string): void {
    this.pino.debug(fields, message);
  }

  info(fields: LogFields, message: string): void {
    this.pino.info(fields, message);
  }

  warn(fields: LogFields, message: string): void {
    this.pino.warn(fields, message);
  }

  error(fields: LogFields, message: string): void {
    this.pino.error(fields, message);
  }

  child(fields: LogFields): Logger {
    return new PinoLogger(this.pino.child(fields));
  }
}
