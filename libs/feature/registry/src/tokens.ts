export const REGISTRY_PORTS = Symbol('RegistryPorts');
export const CATALOG_READER = Symbol('CatalogReader');
export const MODEL_VERSION_DESK = Symbol('ModelVersionDesk');
export const TRAFFIC_DESK = Symbol('TrafficDesk');
export const ENDPOINT_DESK = Symbol('EndpointDesk');
