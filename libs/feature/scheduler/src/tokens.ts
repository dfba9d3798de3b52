export const SCHEDULER_PORTS = Symbol('SCHEDULER_PORTS');
export const FLEET = Symbol('FLEET');
export const RESERVATION_DESK = Symbol('RESERVATION_DESK');
export const PLAN_DESK = Symbol('PLAN_DESK');
export const FLEET_WRITER = Symbol('FLEET_WRITER');
