export * from './driver-config.js';
export * from './driver-ports.js';
export * from './run-replica-driver.js';
export * from './start-replica-driver.js';
