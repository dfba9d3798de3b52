export * from './simulate-trace.js';
export * from './simulate-fleet-trace.js';
