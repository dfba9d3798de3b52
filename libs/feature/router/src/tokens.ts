/** Names under which the container holds what the controllers need. */
export const ADMISSION_SERVICE = Symbol('AdmissionService');
export const ROUTER_LOGGER = Symbol('RouterLogger');
