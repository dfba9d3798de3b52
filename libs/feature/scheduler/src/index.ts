export * from './config.js';
export * from './ports.js';
export * from './run-scheduling.js';
export * from './start-scheduler.js';
