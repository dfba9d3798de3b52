export { addressedTo } from './instance-address.js';
export * from './router-config.js';
export * from './router-ports.js';
export * from './start-router.js';
