export * from './pino-logger.js';
export * from './random-ids.js';
export * from './system-clock.js';
export * from './system-timers.js';
export * from './tracing.js';
