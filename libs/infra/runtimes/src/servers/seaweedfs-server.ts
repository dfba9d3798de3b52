import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChildServer, type RunningServer } from '../process/child-server.js';
import { findFreePort, isPortFree } from '../process/free-port.js';

const READY_TIMEOUT_MS = 60_000;
/** An orderly stop of SeaweedFS takes a quarter of a minute and adds nothing: it is ended at once. */
const STOP_TIMEOUT_MS = 0;
const PROBE_TIMEOUT_MS = 1_000;
const PORT_PAIR_DISTANCE = 10_000;
const ATTEMPTS_MAX = 20;

export interface SeaweedfsOptions {
  /** The `weed` executable. */
  readonly path: string;
  readonly dataDir: string;
  readonly logFile: string;
  readonly port: number;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Told of the process at once, before it is ready. */
  readonly onSpawn?: ((pid: number) => void) | undefined;
}

/** Starts SeaweedFS' S3 front end with everything behind it, on the loopback address and with one credential. */
export async function startSeaweedfs(options: SeaweedfsOptions): Promise<RunningServer> {
  await mkdir(join(options.dataDir, 'data'), { recursive: true });
  await mkdir(join(options.dataDir, 'sockets'), { recursive: true });
  const configFile = join(options.dataDir, 's3.json');
  const identity = {
    name: 'penstock', credentials: [{ accessKey: options.accessKeyId, secretKey: options.secretAccessKey }],
    actions: ['Admin', 'Read', 'Write', 'List', 'Tagging'],
  };
  await writeFile(configFile, JSON.stringify({ identities: [identity] }), { mode: 0o600 });
  const [master, volume, filer] = [await findPortPair(), await findPortPair(), await findPortPair()];
  return startChildServer({
    name: 'seaweedfs', command: options.path, logFile: options.logFile, port: options.port, url: `http://127.0.0.1:${options.port}`,
    args: [
      '-logtostderr=true', 'server', '-ip=127.0.0.1', '-ip.bind=127.0.0.1', `-dir=${join(options.dataDir, 'data')}`,
      `-master.port=${master}`, `-volume.port=${volume}`, '-filer', `-filer.port=${filer}`, `-filer.localSocket=${join(options.dataDir, 'filer.sock')}`,
      '-s3', `-s3.port=${options.port}`, `-s3.config=${configFile}`, '-s3.port.iceberg=0', '-s3.port.lance=0',
      '-master.telemetry=false', '-master.electionTimeout=1s', '-volume.preStopSeconds=0', '-volume.max=30',
    ],
    // Its internal sockets go to the temporary folder and stay after a crash: they are kept with the data instead.
    env: { ...process.env, TMPDIR: join(options.dataDir, 'sockets') }, cwd: options.dataDir,
    stopSignal: 'SIGKILL', stopTimeoutMs: STOP_TIMEOUT_MS, readyTimeoutMs: READY_TIMEOUT_MS,
    onSpawn: options.onSpawn,
    isReady: () => isHealthy(options.port),
  });
}

async function isHealthy(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
  await response.body?.cancel();
  return response.ok;
}

/** Each part also listens 10,000 ports above its own. */
async function findPortPair(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = await findFreePort();
    if (await isPortFree(port + PORT_PAIR_DISTANCE)) return port;
  }
  throw new Error('No two free ports 10,000 apart were found; end some programs and retry.');
}
