export * from './clickhouse-usage-reports.js';
export * from './clickhouse-usage-sink.js';
export * from './connect-clickhouse.js';
