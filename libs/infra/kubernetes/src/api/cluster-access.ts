import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';

/** How to reach the API server and who we are there. */
export interface ClusterAccess {
  /** Base URL without a path. */
  readonly server: string;
  /** PEM of the authority behind the server's certificate. */
  readonly ca: string | undefined;
  /** PEM of a client certificate and its key. */
  readonly certificate: { readonly cert: string; readonly key: string } | undefined;
  /** A bearer token, fresh enough to use now: mounted ones change. */
  token(): Promise<string | undefined>;
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Mounted tokens are renewed long before they end; reading them this often is enough. */
const TOKEN_KEPT_MS = 60_000;

const named = <Name extends string, Schema extends z.ZodType>(name: Name, schema: Schema) => z.array(z.looseObject({ name: z.string(), [name]: schema } as { name: z.ZodString } & Record<Name, Schema>)).default([]);
const cluster = z.looseObject({ server: z.url(), 'certificate-authority': z.string().optional(), 'certificate-authority-data': z.string().optional() });
const user = z.looseObject({
  token: z.string().optional(), tokenFile: z.string().optional(), exec: z.unknown().optional(), 'auth-provider': z.unknown().optional(),
  'client-certificate': z.string().optional(), 'client-certificate-data': z.string().optional(), 'client-key': z.string().optional(), 'client-key-data': z.string().optional(),
});
const context = z.looseObject({ cluster: z.string(), user: z.string() });
const kubeconfig = z.looseObject({ 'current-context': z.string(), clusters: named('cluster', cluster), users: named('user', user), contexts: named('context', context) });

export interface AccessSources {
  /** A kubeconfig file; it wins over the service account. */
  readonly kubeconfig?: string | undefined;
  /** `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` name the server inside a cluster. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly now?: (() => number) | undefined;
}

/** From a kubeconfig file, else from the service account that Kubernetes mounts into a Pod. Throws with what is missing. */
export async function loadClusterAccess(sources: AccessSources): Promise<ClusterAccess> {
  const now = sources.now ?? Date.now;
  if (sources.kubeconfig !== undefined) return fromKubeconfig(sources.kubeconfig, now);
  const host = sources.environment['KUBERNETES_SERVICE_HOST'];
  const port = sources.environment['KUBERNETES_SERVICE_PORT'] ?? '443';
  if (host === undefined) throw new Error('There is no Kubernetes here: set KUBECONFIG to a kubeconfig file, or run in a Pod with a service account.');
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: await readFile(`${SERVICE_ACCOUNT}/ca.crt`, 'utf8'),
    certificate: undefined,
    token: freshFile(`${SERVICE_ACCOUNT}/token`, now),
  };
}

async function fromKubeconfig(path: string, now: () => number): Promise<ClusterAccess> {
  const config = kubeconfig.parse(parse(await readFile(path, 'utf8')));
  const wanted = config['current-context'];
  const chosen = config.contexts.find((entry) => entry.name === wanted)?.context;
  const server = config.clusters.find((entry) => entry.name === chosen?.cluster)?.cluster;
  const account = config.users.find((entry) => entry.name === chosen?.user)?.user;
  if (chosen === undefined || server === undefined || account === undefined) throw new Error(`${path}: the context ${wanted} names a cluster or user that is not there.`);
  if (account.exec !== undefined || account['auth-provider'] !== undefined) {
    throw new Error(`${path}: user ${chosen.user} gets its credentials from a program; give the driver a service account token or a client certificate.`);
  }
  const pem = async (data: string | undefined, file: string | undefined): Promise<string | undefined> => {
    if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
    return file === undefined ? undefined : readFile(resolve(dirname(path), file), 'utf8');
  };
  const cert = await pem(account['client-certificate-data'], account['client-certificate']);
  const key = await pem(account['client-key-data'], account['client-key']);
  const { token, tokenFile } = account;
  return {
    server: server.server.replace(/\/+$/, ''),
    ca: await pem(server['certificate-authority-data'], server['certificate-authority']),
    certificate: cert === undefined || key === undefined ? undefined : { cert, key },
    token: tokenFile === undefined ? () => Promise.resolve(token) : freshFile(resolve(dirname(path), tokenFile), now),
  };
}

function freshFile(path: string, now: () => number): () => Promise<string> {
  let kept: { readonly text: string; readonly atMs: number } | undefined;
  return async () => {
    if (kept === undefined || now() - kept.atMs > TOKEN_KEPT_MS) kept = { text: (await readFile(path, 'utf8')).trim(), atMs: now() };
    return kept.text;
  };
}
