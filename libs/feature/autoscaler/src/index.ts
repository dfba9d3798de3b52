export * from './config.js';
export * from './ports.js';
export * from './run-autoscaling.js';
export * from './start-autoscaler.js';
