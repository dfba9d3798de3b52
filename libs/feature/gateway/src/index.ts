export { gatewayConfig, type GatewayConfig } from './gateway-config.js';
export type { GatewayPorts } from './gateway-ports.js';
export { INTERNAL_REQUEST_ID_HEADER, INTERNAL_TENANT_HEADER, INTERNAL_TOKEN_HEADER } from './http/caller.js';
export { startGateway } from './start-gateway.js';
