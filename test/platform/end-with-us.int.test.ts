import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { until } from './eventually.js';

const run = promisify(execFile);
const WAIT_MS = 10_000;

test('a child ends with the process that started it, when that exits in the middle of its work', async () => {
  const module = JSON.stringify(join(import.meta.dirname, '../dist/platform/end-with-us.js'));
  const script = `const { endWithUs } = await import(${module}); const { spawn } = await import('node:child_process'); const child = spawn('sleep', ['600']); endWithUs(child); console.log(child.pid); process.exit(130);`;
  const { code, stdout } = await run(process.execPath, ['--input-type=module', '-e', script]).then(() => ({ code: 0, stdout: '' }), (error: { code: number; stdout: string }) => error);
  expect(code).toBe(130);
  const pid = Number(stdout);
  expect(pid).toBeGreaterThan(0);
  await until('the end of the child', WAIT_MS, () => Promise.resolve(isRunning(pid) ? undefined : true));
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
