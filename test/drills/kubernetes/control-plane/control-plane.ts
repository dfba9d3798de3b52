import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { findFreePort, startChildServer, type RunningServer } from '@penstock/infra-runtimes';
import type { ControlPlaneFiles } from './build-control-plane.js';

const READY_TIMEOUT_MS = 120_000;
const PROBE_TIMEOUT_MS = 2_000;
const RSA_BITS = 2_048;

/** Kwok renews a lease four times in this long; the controller manager misses it after the grace period. */
const NODE_LEASE_SECONDS = 8;
const NODE_GRACE = '12s';

/** Nodes with this label belong to the kwok of the same name: stopping one loses its nodes and no others. */
export const KWOK_LABEL = 'penstock.dev/kwok';

interface Ports {
  readonly api: number;
  readonly etcd: number;
  readonly peer: number;
  readonly controllers: number;
  readonly scheduler: number;
}

/** etcd, API server, controller manager, scheduler and one kwok for each group of nodes, on loopback; its state is throwaway. */
export class ControlPlane {
  private readonly servers = new Map<string, RunningServer>();
  private readonly token = randomBytes(16).toString('hex');

  private constructor(private readonly folder: string, private readonly files: ControlPlaneFiles, private readonly ports: Ports) {}

  static async start(folder: string, files: ControlPlaneFiles, kwokGroups: readonly string[]): Promise<ControlPlane> {
    const ports = { api: await findFreePort(), etcd: await findFreePort(), peer: await findFreePort(), controllers: await findFreePort(), scheduler: await findFreePort() };
    const plane = new ControlPlane(folder, files, ports);
    try {
      await plane.writeCredentials();
      await plane.startEtcd();
      await plane.startApiServer();
      await writeFile(plane.path('kubeconfig'), plane.kubeconfig(plane.url, await plane.ca(), plane.token));
      await Promise.all([plane.startControllers(), plane.startScheduler(), ...kwokGroups.map((group) => plane.startKwok(group))]);
      return plane;
    } catch (error) {
      await plane.stop();
      throw error;
    }
  }

  get url(): string {
    return `https://127.0.0.1:${this.ports.api}`;
  }

  get apiPort(): number {
    return this.ports.api;
  }

  get adminKubeconfig(): string {
    return this.path('kubeconfig');
  }

  /** The API server's own certificate, which is its own authority. */
  ca(): Promise<string> {
    return readFile(this.path('certificates', 'apiserver.crt'), 'utf8');
  }

  /** JSON is YAML. */
  kubeconfig(server: string, ca: string, token: string): string {
    return JSON.stringify({
      apiVersion: 'v1', kind: 'Config', 'current-context': 'drill',
      clusters: [{ name: 'drill', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
      users: [{ name: 'drill', user: { token } }],
      contexts: [{ name: 'drill', context: { cluster: 'drill', user: 'drill' } }],
    });
  }

  /** As a crash, and up again on the same port with what etcd holds. */
  async restartApiServer(): Promise<void> {
    await this.servers.get('kube-apiserver')?.kill();
    await this.startApiServer();
  }

  /** Stops the heartbeats of a group's nodes, as a power cut does. */
  pauseKwok(group: string): void {
    process.kill(this.pidOf(`kwok-${group}`), 'SIGSTOP');
  }

  resumeKwok(group: string): void {
    process.kill(this.pidOf(`kwok-${group}`), 'SIGCONT');
  }

  async stop(): Promise<void> {
    await Promise.all([...this.servers.values()].map((server) => server.kill()));
  }

  private pidOf(name: string): number {
    const server = this.servers.get(name);
    if (server === undefined) throw new Error(`${name} does not run`);
    return server.pid;
  }

  private path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  private async writeCredentials(): Promise<void> {
    await mkdir(this.path('certificates'), { recursive: true });
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: RSA_BITS, publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } });
    await writeFile(this.path('certificates', 'accounts.key'), privateKey, { mode: 0o600 });
    await writeFile(this.path('certificates', 'accounts.pub'), publicKey);
    await writeFile(this.path('tokens.csv'), `${this.token},admin,admin-uid,"system:masters"\n`, { mode: 0o600 });
  }

  private async spawn(name: string, program: string, port: number, args: readonly string[], isReady: () => Promise<boolean>): Promise<void> {
    this.servers.set(name, await startChildServer({
      name, command: join(this.files.bin, program), args, logFile: this.path('logs', `${name}.log`), port, url: `https://127.0.0.1:${port}`,
      stopSignal: 'SIGKILL', stopTimeoutMs: PROBE_TIMEOUT_MS, readyTimeoutMs: READY_TIMEOUT_MS, isReady,
    }));
  }

  private startEtcd(): Promise<void> {
    const { etcd, peer } = this.ports;
    const [client, peers] = [`http://127.0.0.1:${etcd}`, `http://127.0.0.1:${peer}`];
    const args = [
      '--name', 'one', '--data-dir', this.path('etcd'), '--listen-client-urls', client, '--advertise-client-urls', client, '--listen-peer-urls', peers,
      '--initial-advertise-peer-urls', peers, '--initial-cluster', `one=${peers}`, '--unsafe-no-fsync', '--log-level', 'warn',
    ];
    return this.spawn('etcd', 'etcd', etcd, args, async () => (await fetch(`${client}/health`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })).ok);
  }

  private startApiServer(): Promise<void> {
    const certificates = this.path('certificates');
    const args = [
      `--etcd-servers=http://127.0.0.1:${this.ports.etcd}`, '--bind-address=127.0.0.1', '--advertise-address=127.0.0.1', `--secure-port=${this.ports.api}`, `--cert-dir=${certificates}`,
      `--service-account-key-file=${join(certificates, 'accounts.pub')}`, `--service-account-signing-key-file=${join(certificates, 'accounts.key')}`,
      '--service-account-issuer=https://kubernetes.default.svc', '--service-cluster-ip-range=10.0.0.0/24', '--authorization-mode=RBAC', `--token-auth-file=${this.path('tokens.csv')}`,
      '--endpoint-reconciler-type=none',
    ];
    return this.spawn('kube-apiserver', 'kube-apiserver', this.ports.api, args, () => answersWell(`${this.url}/readyz`, this.token));
  }

  private startControllers(): Promise<void> {
    const args = [
      ...this.clientArguments(this.ports.controllers), `--cert-dir=${this.path('controllers')}`, `--service-account-private-key-file=${this.path('certificates', 'accounts.key')}`,
      `--root-ca-file=${this.path('certificates', 'apiserver.crt')}`, `--node-monitor-grace-period=${NODE_GRACE}`, '--node-monitor-period=1s',
    ];
    return this.spawn('controllers', 'kube-controller-manager', this.ports.controllers, args, () => answersWell(`https://127.0.0.1:${this.ports.controllers}/healthz`));
  }

  private startScheduler(): Promise<void> {
    const args = [...this.clientArguments(this.ports.scheduler), `--cert-dir=${this.path('scheduler')}`];
    return this.spawn('scheduler', 'kube-scheduler', this.ports.scheduler, args, () => answersWell(`https://127.0.0.1:${this.ports.scheduler}/healthz`));
  }

  private clientArguments(port: number): readonly string[] {
    const config = this.path('kubeconfig');
    return [`--kubeconfig=${config}`, `--authentication-kubeconfig=${config}`, `--authorization-kubeconfig=${config}`, '--bind-address=127.0.0.1', '--leader-elect=false', `--secure-port=${port}`];
  }

  private async startKwok(group: string): Promise<void> {
    const port = await findFreePort();
    const args = [
      `--kubeconfig=${this.path('kubeconfig')}`, `--config=${this.files.stages}`, '--manage-all-nodes=false', `--manage-nodes-with-label-selector=${KWOK_LABEL}=${group}`,
      `--node-lease-duration-seconds=${NODE_LEASE_SECONDS}`, '--node-ip=127.0.0.1', `--node-port=${port}`, '--cidr=10.244.0.0/16', `--server-address=127.0.0.1:${port}`,
    ];
    await this.spawn(`kwok-${group}`, 'kwok', port, args, async () => (await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })).ok);
  }
}

/** The certificates of these servers are their own; what is asked here is only whether they are up. */
function answersWell(url: string, token?: string): Promise<boolean> {
  return new Promise((resolve) => {
    const call = request(url, { rejectUnauthorized: false, timeout: PROBE_TIMEOUT_MS, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    call.on('error', () => resolve(false));
    call.on('timeout', () => call.destroy());
    call.end();
  });
}
