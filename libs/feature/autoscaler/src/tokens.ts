export const AUTOSCALER_PORTS = Symbol('AUTOSCALER_PORTS');
export const AUTOSCALING = Symbol('AUTOSCALING');
