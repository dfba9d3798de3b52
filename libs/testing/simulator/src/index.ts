export * from './simulate-trace.js';
