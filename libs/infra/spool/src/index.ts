export * from './file-usage-spool.js';
export * from './folder-lock.js';
export * from './hmac-key-minter.js';
