import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { defaultCacheDir } from '@penstock/infra-runtimes';

const run = promisify(execFile);
const BUILD_TIMEOUT_MS = 3_600_000;
const OUTPUT_BYTES_MAX = 16 * 1_048_576;
const VERSION_PACKAGE = 'k8s.io/component-base/version';
const KUBERNETES_VERSION = 'v1.37.2';

/** The programs by the packages that they are built from. */
const PROGRAMS = [
  'k8s.io/kubernetes/cmd/kube-apiserver', 'k8s.io/kubernetes/cmd/kube-controller-manager', 'k8s.io/kubernetes/cmd/kube-scheduler', 'sigs.k8s.io/kwok/cmd/kwok', 'go.etcd.io/etcd/server/v3',
] as const;

/** Kwok has no behaviour of its own: these give nodes a heartbeat and let Pods become ready and go away. */
const STAGES = ['node/fast/node-initialize', 'node/heartbeat-with-lease/node-heartbeat-with-lease', 'pod/fast/pod-ready', 'pod/fast/pod-delete'] as const;

export interface ControlPlaneFiles {
  /** Folder with `etcd`, `kube-apiserver`, `kube-controller-manager`, `kube-scheduler` and `kwok`. */
  readonly bin: string;
  readonly stages: string;
}

/**
 * A real Kubernetes control plane and kwok out of the Go module proxy, pinned by checksum, built once per machine:
 * some minutes and 3 GB of scratch space, 0.4 GB afterwards. `go.mod` and `go.sum` stand beside this file.
 */
export async function buildControlPlane(say: (text: string) => void): Promise<ControlPlaneFiles> {
  const recipe = await Promise.all(['go.mod', 'go.sum'].map((name) => readFile(join(import.meta.dirname, name))));
  const key = createHash('sha256').update(JSON.stringify([KUBERNETES_VERSION, PROGRAMS, STAGES])).update(Buffer.concat(recipe)).digest('hex').slice(0, 16);
  const folder = join(defaultCacheDir(), 'kubernetes', key);
  const files = { bin: join(folder, 'bin'), stages: join(folder, 'stages.yaml') };
  if (await access(files.stages).then(() => true, () => false)) return files;
  say('building a Kubernetes control plane from the Go module proxy; this happens once and takes some minutes');
  await mkdir(join(defaultCacheDir(), 'kubernetes'), { recursive: true });
  const scratch = await mkdtemp(join(defaultCacheDir(), 'kubernetes', 'build-'));
  try {
    await build(scratch);
    await rm(folder, { recursive: true, force: true });
    await rename(join(scratch, 'out'), folder);
  } finally {
    await run('chmod', ['-R', 'u+w', scratch]).catch(() => undefined);
    await rm(scratch, { recursive: true, force: true });
  }
  return files;
}

async function build(scratch: string): Promise<void> {
  const source = join(scratch, 'source');
  const out = join(scratch, 'out');
  await mkdir(source);
  await mkdir(join(out, 'bin'), { recursive: true });
  for (const name of ['go.mod', 'go.sum']) await copyFile(join(import.meta.dirname, name), join(source, name));
  const env = {
    GOCACHE: join(scratch, 'go-build'), ...process.env, PATH: [process.env['PATH'] ?? '', '/usr/local/go/bin'].join(delimiter),
    CGO_ENABLED: '0', GOTOOLCHAIN: 'local', GOFLAGS: '-buildvcs=false -mod=readonly',
  };
  const go = async (...args: string[]): Promise<string> => (await run('go', args, { cwd: source, env, timeout: BUILD_TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX })).stdout.trim();
  await go('version').catch((error: Error) => {
    throw new Error(`The control plane is built with Go 1.26 or newer, and \`go version\` fails (${error.message}). Install Go and run the drill again.`);
  });
  // Without its version stamped in, clients cannot parse what the server says it is.
  const stamps = [['gitVersion', KUBERNETES_VERSION], ['gitMajor', '1'], ['gitMinor', '37'], ['gitTreeState', 'clean'], ['gitCommit', '0'], ['buildDate', '2026-01-01T00:00:00Z']];
  const ldflags = ['-s', '-w', ...stamps.map(([name, value]) => `-X ${VERSION_PACKAGE}.${name}=${value}`)].join(' ');
  await go('build', '-gcflags=all=-dwarf=false', '-trimpath', '-ldflags', ldflags, '-o', `${join(out, 'bin')}/`, ...PROGRAMS);
  await rename(join(out, 'bin', 'server'), join(out, 'bin', 'etcd'));
  const kwok = await go('list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/kwok');
  const stages = await Promise.all(STAGES.map((name) => readFile(join(kwok, 'kustomize', 'stage', `${name}.yaml`), 'utf8')));
  await writeFile(join(out, 'stages.yaml'), stages.join('\n---\n'));
}
