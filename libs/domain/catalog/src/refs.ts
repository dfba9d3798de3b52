import type { AggregateRef } from '@penstock/kernel';

export function modelVersionRef(modelVersionId: string): AggregateRef {
  return { context: 'registry', aggregate: 'model-version', id: modelVersionId };
}

export function endpointRef(endpointId: string): AggregateRef {
  return { context: 'registry', aggregate: 'endpoint', id: endpointId };
}
