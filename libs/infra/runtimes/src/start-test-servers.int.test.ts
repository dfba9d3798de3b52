import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { identityOf } from './process/process-identity.js';
import { startTestServers } from './start-test-servers.js';

// The guard is a process of its own, and nobody but the process table tells that it is done.
const POLLS_MAX = 400;
const POLL_MS = 50;

const hook = `import { registerHooks } from 'node:module';
  registerHooks({ resolve: (name, context, next) => next(context.parentURL?.endsWith('.ts') && name.startsWith('.') ? name.replace(/\\.js$/, '.ts') : name, context) });`;

describe('startTestServers', () => {
  test('removes its data when it is closed', async () => {
    const servers = await startTestServers(['nats']);
    const { dataDir } = servers.instance;
    expect(existsSync(dataDir)).toBe(true);
    await servers.close();
    expect(existsSync(dataDir)).toBe(false);
  });

  test('leaves no server and no data behind when the test run is ended by force', async () => {
    const script = `import(${JSON.stringify(new URL('./index.ts', import.meta.url).href)}).then(async ({ startTestServers }) => {
      const servers = await startTestServers(['nats', 'postgres']);
      console.log(JSON.stringify({ pids: servers.status().map((status) => status.pid), dataDir: servers.instance.dataDir }));
      setInterval(() => undefined, 1000);
    });`;
    const args = ['--no-warnings', '--experimental-transform-types', '--import', `data:text/javascript,${encodeURIComponent(hook)}`, '--input-type=module', '-e', script];
    const run = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const [output] = (await once(run.stdout, 'data')) as [Buffer];
    const { pids, dataDir } = JSON.parse(output.toString()) as { pids: number[]; dataDir: string };
    expect(await Promise.all(pids.map(async (pid) => (await identityOf(pid)) !== undefined))).toEqual([true, true]);
    run.kill('SIGKILL');
    const left = async (): Promise<{ readonly servers: number; readonly hasData: boolean }> => ({
      servers: (await Promise.all(pids.map(identityOf))).filter((identity) => identity !== undefined).length,
      hasData: existsSync(dataDir),
    });
    for (let attempt = 0; attempt < POLLS_MAX; attempt += 1) {
      const { servers, hasData } = await left();
      if (servers === 0 && !hasData) break;
      await delay(POLL_MS);
    }
    expect(await left()).toEqual({ servers: 0, hasData: false });
  });
});
