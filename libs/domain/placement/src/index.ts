export * from './capacity.js';
export * from './placement-input.js';
export * from './placement-plan.js';
export * from './plan-placement.js';
export * from './start-backoff.js';
