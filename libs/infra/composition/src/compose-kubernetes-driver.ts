import { replicaDriverConfig, startReplicaDriver } from '@penstock/feature-replica-driver';
import type { RunningService } from '@penstock/feature-shell';
import { HttpEngineProbe } from '@penstock/infra-engines';
import { connectKubernetes, kubernetesSettings } from '@penstock/infra-kubernetes';
import { openPlatform } from './platform.js';
import { readSettings, type Environment } from './settings.js';
import { closingOnFailure, withClosers } from './with-closers.js';

/** Version that the nodes of a cluster report for their agent. */
const DRIVER_VERSION = '0.1.0';

/** The agent that stands for the nodes of a Kubernetes cluster: it turns placements into Pods. */
export async function composeKubernetesDriver(environment: Environment): Promise<RunningService> {
  const config = readSettings(replicaDriverConfig, environment);
  const settings = readSettings(kubernetesSettings, environment);
  const platform = await openPlatform('replica-driver', environment, { servesCommands: false });
  const closers = [() => platform.close()];
  return closingOnFailure(closers, async () => {
    const driver = await connectKubernetes(settings, environment, { version: DRIVER_VERSION, logger: platform.logger });
    const kubernetes = { name: 'kubernetes', check: () => Promise.resolve(driver.isSynced() ? undefined : 'the nodes and Pods of the cluster have not been read yet') };
    const ports = { ...platform.ports, probes: [...(platform.ports.probes ?? []), kubernetes] };
    return withClosers(await startReplicaDriver(config, { ...ports, driver, probe: new HttpEngineProbe() }), closers);
  });
}
