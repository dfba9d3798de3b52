export const SCHEDULER_PORTS = Symbol('SCHEDULER_PORTS');
export const FLEET = Symbol('FLEET');
export const FLEET_WRITER = Symbol('FLEET_WRITER');
