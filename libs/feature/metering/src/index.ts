export * from './metering-config.js';
export * from './metering-ports.js';
export * from './start-metering.js';
