export * from './metering-config.js';
export * from './metering-ports.js';
export * from './start-metering.js';
export { PENDING_RECORDS_MAX } from './usage-batcher.js';
