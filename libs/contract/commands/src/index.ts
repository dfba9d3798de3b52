export * from './batch.js';
export * from './define-command.js';
export * from './fleet.js';
export * from './metering.js';
export * from './registry.js';
export * from './replay.js';
export * from './routing.js';
export * from './scaling.js';
