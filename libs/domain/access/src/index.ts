export * from './access-projection.js';
export * from './api-key.js';
export * from './authorise.js';
export * from './key-minter.js';
export * from './organisation.js';
export * from './project.js';
export * from './refs.js';
