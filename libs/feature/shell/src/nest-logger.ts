import type { LoggerService } from '@nestjs/common';
import type { Logger } from '@penstock/kernel';

/** Hands Nest's own lines to the structured log. Its start-up chatter counts as debug. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...context: unknown[]): void {
    this.logger.debug({ nest: context.at(-1) }, String(message));
  }

  error(message: unknown, ...context: unknown[]): void {
    this.logger.error({ nest: context.at(-1) }, String(message));
  }

  warn(message: unknown, ...context: unknown[]): void {
    this.logger.warn({ nest: context.at(-1) }, String(message));
  }

  debug(message: unknown, ...context: unknown[]): void {
    this.logger.debug({ nest: context.at(-1) }, String(message));
  }

  verbose(message: unknown, ...context: unknown[]): void {
    this.logger.debug({ nest: context.at(-1) }, String(message));
  }
}
