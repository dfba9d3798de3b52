export * from './engine-host.js';
export * from './fleet-description.js';
export * from './shared-transfers.js';
export * from './simulated-fleet.js';
