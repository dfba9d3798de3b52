export const SCHEDULER_PORTS = Symbol('SCHEDULER_PORTS');
export const FLEET = Symbol('FLEET');
