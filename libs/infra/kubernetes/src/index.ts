export { loadClusterAccess, type ClusterAccess } from './api/cluster-access.js';
export { KubeClient, KubeError } from './api/kube-client.js';
export { connectKubernetes, KubernetesReplicaDriver, type KubernetesDriverOptions } from './kubernetes-replica-driver.js';
export { engineImages, kubernetesSettings, type KubernetesSettings } from './kubernetes-settings.js';
export { buildLeaderWorkerSet, type GangAssignment } from './objects/leader-worker-set.js';
