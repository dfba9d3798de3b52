import { spawn } from 'node:child_process';

/** Only the end of a tool's output is kept for the error message. */
const OUTPUT_KEPT_BYTES = 4_000;

export interface ToolOptions {
  readonly cwd?: string | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly timeoutMs: number;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  /** Text for its standard input; none by default. */
  readonly input?: string | undefined;
}

export class ToolFailedError extends Error {
  override readonly name = 'ToolFailedError';
}

/**
 * Runs a program to its end and returns what it printed (both streams, the last part of it).
 * Files that it makes can be read by all users, whatever this process' umask is.
 * Throws {@link ToolFailedError} when it cannot be started, fails, or takes longer than `timeoutMs`.
 */
export function runTool(command: string, args: readonly string[], options: ToolOptions): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn('/bin/sh', ['-c', 'umask 022; exec "$0" "$@"', command, ...args], {
    cwd: options.cwd, env: options.env ?? process.env, stdio: ['pipe', 'pipe', 'pipe'], detached: true,
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  });
  let output = '';
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString('utf8')).slice(-OUTPUT_KEPT_BYTES);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  // A tool that ends without reading its input is judged by its exit code.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  const killGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The whole group is gone already.
    }
  };
  const timer = setTimeout(killGroup, options.timeoutMs);
  // A tool must not outlive us when the user gives up in the middle of an installation.
  process.once('exit', killGroup);
  const settle = (): void => {
    clearTimeout(timer);
    process.off('exit', killGroup);
  };
  child.once('error', (error) => {
    settle();
    reject(new ToolFailedError(`${command} cannot be started: ${error.message}`, { cause: error }));
  });
  child.once('close', (code, signal) => {
    settle();
    if (code === 0) resolve(output);
    else reject(new ToolFailedError(`${command} ${args[0] ?? ''} ended with ${signal ?? `exit code ${code ?? '?'}`}: ${lastLines(output)}`));
  });
  return promise;
}

function lastLines(output: string): string {
  const lines = output.trim().split('\n').map((line) => line.trim()).filter((line) => line !== '');
  return lines.slice(-3).join(' | ').slice(0, 600);
}
