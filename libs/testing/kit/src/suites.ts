export * from './event-log-suite.js';
export * from './object-store-suite.js';
