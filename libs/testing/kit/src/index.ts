// The port suites need Jest's globals and so have their own entry, `@penstock/testing-kit/suites`.
export * from './decider-specification.js';
export * from './eventually.js';
export * from './exhaustive-optimiser.js';
export * from './fixed-clock.js';
export * from './local-command-client.js';
export * from './local-command-transport.js';
export * from './manual-timers.js';
export * from './memory-event-log.js';
export * from './memory-signals.js';
export * from './memory-snapshot-store.js';
export * from './onnx-models.js';
export * from './sequential-ids.js';
export * from './simulated-mig-driver.js';
export * from './simulated-replica-driver.js';
export * from './test-nats.js';
export type { EventLogUnderTest } from './suites.js';
export * from './memory-object-store.js';
export * from './memory-shared-records.js';
