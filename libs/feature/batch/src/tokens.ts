export const BATCH_PORTS = Symbol('BATCH_PORTS');
export const FILE_DESK = Symbol('FILE_DESK');
export const JOB_DESK = Symbol('JOB_DESK');
