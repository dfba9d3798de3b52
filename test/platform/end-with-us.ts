import type { ChildProcess } from 'node:child_process';

const living = new Set<ChildProcess>();

process.once('exit', () => {
  for (const child of living) child.kill('SIGTERM');
});

/** However this process ends, short of being killed outright, the child is told to end with it. */
export function endWithUs(child: ChildProcess): void {
  living.add(child);
  child.once('exit', () => living.delete(child));
}
