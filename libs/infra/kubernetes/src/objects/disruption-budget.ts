import type { DisruptionBudget } from '@penstock/domain-lifecycle';
import { ENDPOINT_LABEL, objectName, ownLabels } from './labels.js';

export function budgetName(endpointId: string): string {
  return objectName(endpointId);
}

/**
 * Pods without a controller only allow a whole number that has to stay. What is not ready may always be evicted:
 * it serves nobody, and must not hold up a drain.
 */
export function podDisruptionBudget({ endpointId, availableMin }: DisruptionBudget, cluster: string): object {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: budgetName(endpointId), labels: { ...ownLabels(cluster), [ENDPOINT_LABEL]: endpointId } },
    spec: {
      minAvailable: availableMin,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: { ...ownLabels(cluster), [ENDPOINT_LABEL]: endpointId } },
    },
  };
}
