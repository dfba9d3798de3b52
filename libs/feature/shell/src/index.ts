export * from './answer-command.js';
export * from './config.js';
export * from './health-routes.js';
export * from './nest-logger.js';
export * from './ports.js';
export * from './reconcile-loop.js';
export * from './service.js';
