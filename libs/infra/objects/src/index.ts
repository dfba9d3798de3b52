export * from './filesystem-object-store.js';
export * from './open-object-store.js';
export * from './s3-object-store.js';
