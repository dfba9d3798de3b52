export * from './admin.js';
export * from './batches.js';
export * from './chat.js';
export * from './error-body.js';
export * from './error-catalogue.js';
export * from './models.js';
export * from './routes.js';
export * from './usage.js';
