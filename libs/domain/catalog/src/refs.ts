import type { AggregateRef } from '@penstock/kernel';

export function modelVersionRef(modelVersionId: string): AggregateRef {
  return { context: 'registry', aggregate: 'model-version', id: modelVersionId };
}

export function trafficSplitRef(splitId: string): AggregateRef {
  return { context: 'registry', aggregate: 'traffic-split', id: splitId };
}

export function endpointRef(endpointId: string): AggregateRef {
  return { context: 'registry', aggregate: 'endpoint', id: endpointId };
}
