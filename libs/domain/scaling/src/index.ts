export * from './decide-scale.js';
export * from './endpoint-scale.js';
export * from './load-memory.js';
export * from './scaling-projection.js';
export * from './queries.js';
