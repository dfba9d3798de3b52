export * from './batch-config.js';
export * from './batch-ports.js';
export * from './start-batch.js';
