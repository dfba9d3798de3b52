export * from './modelled-engines.js';
export * from './simulate-trace.js';
export * from './simulate-fleet-trace.js';
export * from './virtual-time.js';
