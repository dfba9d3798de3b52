export * from './registry-config.js';
export * from './registry-ports.js';
export * from './run-catalog.js';
export * from './start-registry.js';
