export * from './fold-usage.js';
export * from './queries.js';
export * from './usage-buckets.js';
export * from './usage-outbox.js';
export * from './usage-record.js';
export * from './usage-reports.js';
export * from './usage-sink.js';
export * from './supersedes-usage.js';
