export const METERING_PORTS = Symbol('METERING_PORTS');
export const USAGE_BATCHER = Symbol('USAGE_BATCHER');
