export * from './event-log-suite.js';
export * from './object-store-suite.js';
export * from './replica-driver-suite.js';
export * from './shared-records-suite.js';
