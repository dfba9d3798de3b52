import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { connect } from '@nats-io/transport-node';
import { identityOf } from '../process/process-identity.js';
import { InstanceBusyError, openInstance } from './open-instance.js';
import { startEmbedded } from './start-embedded.js';
import type { ServerEvent } from './supervised-server.js';

describe('an instance', () => {
  let dataDir: string;
  const env = { PATH: process.env['PATH'], PENSTOCK_CACHE: process.env['PENSTOCK_CACHE'], HOME: process.env['HOME'] };
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'penstock-instance-'));
    await chmod(dataDir, 0o711);
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  const canConnect = async (url: string): Promise<boolean> => {
    const { host, username, password } = new URL(url);
    const connection = await connect({ servers: host, user: username, pass: password, reconnect: false });
    await connection.close();
    return true;
  };

  test('makes its secrets once, and only its owner can read them', async () => {
    const first = await openInstance({ dataDir, env });
    const { secrets } = first;
    await first.close();
    expect((await stat(join(dataDir, 'secrets.json'))).mode & 0o777).toBe(0o600);
    expect(new Set(Object.values(secrets)).size).toBe(Object.keys(secrets).length);
    const { natsPassword, ...older } = secrets;
    await writeFile(join(dataDir, 'secrets.json'), JSON.stringify(older));
    const second = await openInstance({ dataDir, env });
    expect(second.secrets).toEqual({ ...secrets, natsPassword: second.secrets.natsPassword });
    expect(second.secrets.natsPassword).not.toBe(natsPassword);
    await second.close();
  });

  test('says which file is damaged and gives the folder free again', async () => {
    await writeFile(join(dataDir, 'secrets.json'), '{"natsPassword": 1}');
    await expect(openInstance({ dataDir, env })).rejects.toThrow(/secrets\.json cannot be read: .*Restore it/s);
    await rm(join(dataDir, 'secrets.json'));
    await (await openInstance({ dataDir, env })).close();
  });

  test('is used by one process at a time', async () => {
    const first = await openInstance({ dataDir, env });
    await first.announce('http://127.0.0.1:8080');
    const second = openInstance({ dataDir, env });
    await expect(second).rejects.toBeInstanceOf(InstanceBusyError);
    await expect(second).rejects.toThrow(new RegExp(`Process ${process.pid} .*http://127\\.0\\.0\\.1:8080.*PENSTOCK_HOME`, 's'));
    await first.close();
    await (await openInstance({ env: { ...env, PENSTOCK_HOME: dataDir } })).close();
  });

  test('two run at once, and each keeps its address over a restart', async () => {
    const other = await mkdtemp(join(tmpdir(), 'penstock-instance-'));
    const instances = [await openInstance({ dataDir, env }), await openInstance({ dataDir: other, env })] as const;
    const servers = await Promise.all(instances.map((instance) => startEmbedded(instance, { only: ['nats'] })));
    const urls = servers.map((server) => server.natsUrl);
    expect(new Set(urls).size).toBe(2);
    expect(await Promise.all(urls.map(canConnect))).toEqual([true, true]);
    await Promise.all(servers.map((server) => server.stop()));
    const again = await startEmbedded(instances[0], { only: ['nats'] });
    expect(again.natsUrl).toBe(urls[0]);
    expect(again.objects).toEqual({ kind: 'filesystem', root: join(dataDir, 'objects') });
    await again.stop();
    await Promise.all(instances.map((instance) => instance.close()));
    await rm(other, { recursive: true, force: true });
  });

  test('a server whose port was taken meanwhile moves, and says so', async () => {
    const instance = await openInstance({ dataDir, env });
    const first = await startEmbedded(instance, { only: ['nats'] });
    const port = Number(new URL(first.natsUrl).port);
    await first.stop();
    const squatter = createServer().listen(port, '127.0.0.1');
    await once(squatter, 'listening');
    const events: ServerEvent[] = [];
    const second = await startEmbedded(instance, { only: ['nats'], onEvent: (event) => events.push(event) });
    expect(new URL(second.natsUrl).port).not.toBe(String(port));
    expect(events).toMatchObject([{ server: 'nats', kind: 'moved' }]);
    await second.stop();
    squatter.close();
    await instance.close();
  });

  test('a server that dies comes back on its address', async () => {
    const instance = await openInstance({ dataDir, env });
    const back = Promise.withResolvers<void>();
    const servers = await startEmbedded(instance, { only: ['nats'], onEvent: (event) => event.kind === 'restarted' && back.resolve() });
    const [before] = servers.status();
    await servers.kill('nats');
    await back.promise;
    expect(servers.status()[0]?.pid).not.toBe(before?.pid);
    expect(await canConnect(servers.natsUrl)).toBe(true);
    await servers.stop();
    await instance.close();
  });

  test('what a killed run left behind is ended by the next one', async () => {
    const sources = JSON.stringify(new URL('../index.ts', import.meta.url).href);
    const hook = `import { registerHooks } from 'node:module';
      registerHooks({ resolve: (name, context, next) => next(context.parentURL?.endsWith('.ts') && name.startsWith('.') ? name.replace(/\\.js$/, '.ts') : name, context) });`;
    const script = `import(${sources}).then(async ({ openInstance, startEmbedded }) => {
      const instance = await openInstance();
      const servers = await startEmbedded(instance, { only: ['nats'] });
      console.log(servers.status()[0].pid);
      setInterval(() => undefined, 1000);
    });`;
    const args = ['--no-warnings', '--experimental-transform-types', '--import', `data:text/javascript,${encodeURIComponent(hook)}`, '--input-type=module', '-e', script];
    const run = spawn(process.execPath, args, { env: { ...env, PENSTOCK_HOME: dataDir }, stdio: ['ignore', 'pipe', 'inherit'] });
    const [output] = (await once(run.stdout, 'data')) as [Buffer];
    const orphan = Number(output.toString());
    run.kill('SIGKILL');
    await once(run, 'exit');
    expect(await identityOf(orphan)).toBeDefined();

    const state = JSON.parse(await readFile(join(dataDir, 'state.json'), 'utf8')) as { children: object[] };
    // A stranger that now has a number of ours must be left alone.
    state.children.push({ name: 'stranger', pid: process.pid, identity: 'another start time', commandLine: 'nats-server', stopSignal: 'SIGKILL' });
    await writeFile(join(dataDir, 'state.json'), JSON.stringify(state));
    const instance = await openInstance({ dataDir, env });
    expect(instance.reaped).toMatchObject([{ name: 'nats', pid: orphan }]);
    expect(await identityOf(orphan)).toBeUndefined();
    await instance.close();
  });

  test('servers that run elsewhere are not started, and malformed settings are named without their values', async () => {
    const external = { ...env, NATS_URL: 'nats://somewhere:4222', DATABASE_URL: 'postgres://u:p@db/x', CLICKHOUSE_URL: 'http://ch:8123' };
    const s3 = { S3_ENDPOINT: 'http://s3:9000', S3_BUCKET: 'b', S3_ACCESS_KEY_ID: 'id', S3_SECRET_ACCESS_KEY: 'secret-value' };
    const instance = await openInstance({ dataDir, env: { ...external, ...s3 } });
    const servers = await startEmbedded(instance);
    expect([servers.natsUrl, servers.databaseUrl, servers.clickhouseUrl]).toEqual([external.NATS_URL, external.DATABASE_URL, external.CLICKHOUSE_URL]);
    expect(servers.objects).toMatchObject({ kind: 's3', endpoint: 'http://s3:9000', bucket: 'b', forcePathStyle: true });
    expect(servers.status().every((status) => status.isExternal && status.pid === undefined)).toBe(true);
    await instance.close();
    for (const [bad, message] of [
      [{ NATS_URL: 'secret-value' }, /NATS_URL must be a URL that begins with nats:/],
      [{ S3_ENDPOINT: 'http://s3:9000', S3_SECRET_ACCESS_KEY: 'secret-value' }, /S3_BUCKET is needed together with S3_ENDPOINT/],
    ] as const) {
      const broken = await openInstance({ dataDir, env: { ...env, ...bad } });
      const attempt = startEmbedded(broken);
      await expect(attempt).rejects.toThrow(message);
      await expect(attempt).rejects.not.toThrow(/secret-value/);
      await broken.close();
    }
  });
});
