export * from './cache-artifact-inspector.js';
export * from './cache/node-artifact-cache.js';
export * from './models/bring-embedding-model.js';
export * from './models/default-model.js';
export * from './models/embedding-model.js';
export * from './models/random-model.js';
