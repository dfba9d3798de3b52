/** Names under which the container holds what the controllers need. */
export const ADMISSION_SERVICE = Symbol('AdmissionService');
export const ROUTER_LOGGER = Symbol('RouterLogger');
export const QUOTA_AUTHORITY = Symbol('QUOTA_AUTHORITY');
