/** The group, kind and version of LeaderWorkerSet with the fields that a gang uses; its controller is not part of the drill. */
export const leaderWorkerSetDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'leaderworkersets.leaderworkerset.x-k8s.io', annotations: { 'api-approved.kubernetes.io': 'unapproved, a definition for tests' } },
  spec: {
    group: 'leaderworkerset.x-k8s.io',
    names: { kind: 'LeaderWorkerSet', plural: 'leaderworkersets', singular: 'leaderworkerset', listKind: 'LeaderWorkerSetList', shortNames: ['lws'] },
    scope: 'Namespaced',
    versions: [{
      name: 'v1', served: true, storage: true,
      schema: {
        openAPIV3Schema: {
          type: 'object',
          properties: {
            spec: {
              type: 'object',
              required: ['leaderWorkerTemplate'],
              properties: {
                replicas: { type: 'integer', minimum: 0 },
                leaderWorkerTemplate: {
                  type: 'object',
                  required: ['workerTemplate'],
                  properties: {
                    size: { type: 'integer', minimum: 1 },
                    restartPolicy: { type: 'string', enum: ['Default', 'RecreateGroupOnPodRestart', 'None'] },
                    leaderTemplate: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                    workerTemplate: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  },
                },
              },
            },
          },
        },
      },
    }],
  },
};
