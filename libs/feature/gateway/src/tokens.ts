/** Names under which the container holds what is not a class. */
export const GATEWAY_PORTS = Symbol('gateway ports');
export const REFUSAL_BOOK = Symbol('refusal book');
export const GATEWAY_VIEWS = Symbol('gateway views');
export const KEY_USES = Symbol('key uses');
export const STORED_ANSWERS = Symbol('stored answers');
export const STORED_EXCHANGE = Symbol('stored exchange');
