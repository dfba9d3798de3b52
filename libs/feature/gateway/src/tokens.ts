/** Names under which the container holds what is not a class. */
export const GATEWAY_PORTS = Symbol('gateway ports');
export const GATEWAY_VIEWS = Symbol('gateway views');
