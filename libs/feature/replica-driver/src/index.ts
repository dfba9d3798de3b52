export * from './driver-config.js';
export * from './driver-ports.js';
export * from './start-replica-driver.js';
