import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { contexts, nodeLostV1, streamOf } from '@penstock/contract-events';
import { eventually } from '@penstock/testing-kit';
import { ensureRuntime, startTestServers, type TestServers } from '@penstock/infra-runtimes';
import { authorizationConfig, passwordVariable } from './authorization-config.js';
import { brokerRequest } from './broker-api.js';
import { connectNats, type NatsLink } from './connect-nats.js';
import { DeadLetters } from './dead-letters.js';
import { ensureStreams, untilStreamsExist } from './ensure-streams.js';
import { NatsEventLog } from './nats-event-log.js';
import { NatsSnapshotStore } from './nats-snapshot-store.js';
import { natsServiceNames, permissionsOf, type NatsServiceName } from './service-permissions.js';

const root = join(import.meta.dirname, '../../../..');

const nodeLost = { type: nodeLostV1.type, data: nodeLostV1.schema.parse(nodeLostV1.example) };

let servers: TestServers<'nats'>;
const links: NatsLink[] = [];

beforeAll(async () => {
  servers = await startTestServers(['nats'], { natsUsers: natsServiceNames.map((user) => ({ user, ...permissionsOf(user) })) });
  await ensureStreams(await as('registry'));
});

afterAll(async () => {
  await Promise.all(links.map((link) => link.close()));
  await servers.close();
});

async function as(service: NatsServiceName): Promise<NatsLink> {
  const link = await connectNats({ url: servers.natsUrlOf(service), name: service });
  links.push(link);
  return link;
}

/** Resolves with the server's objection; a request that got through, or timed out for want of an answer, has none. */
const objection = (work: Promise<unknown>): Promise<string> => work.then(() => 'allowed', (error: unknown) => (error instanceof Error ? error.message : String(error)));

describe('the users of the services on NATS', () => {
  test.each(natsServiceNames)('%s reads what it follows, keeps snapshots of its own, and finds the streams', async (service) => {
    const link = await as(service);
    await untilStreamsExist(link, 5_000);
    const log = new NatsEventLog(link, { consumerName: service });
    const readable = contexts.map(streamOf).filter((stream) => permissionsOf(service).publish.includes(`$JS.API.DIRECT.GET.${stream}`));
    for (const stream of readable) for await (const batch of log.read(stream)) expect(batch.length).toBeGreaterThan(0);
    const snapshots = new NatsSnapshotStore(link);
    await snapshots.save(`${service}.view`, { version: 1, positions: {}, state: { of: service } });
    expect(await snapshots.load(`${service}.view`)).toMatchObject({ state: { of: service } });
  });

  test('nobody but the registry makes, changes or deletes a stream, and the registry only its own', async () => {
    for (const service of natsServiceNames) {
      const link = await as(service);
      const { connection } = link;
      const subjects = ['CREATE', 'UPDATE'].map((verb) => `$JS.API.STREAM.${verb}.${service === 'registry' ? 'OTHER' : 'EV_USAGE'}`);
      for (const subject of [...subjects, '$JS.API.STREAM.DELETE.EV_USAGE', '$JS.API.STREAM.PURGE.EV_USAGE', '$JS.API.STREAM.SNAPSHOT.EV_USAGE', '$JS.API.STREAM.LIST']) {
        expect({ service, subject, said: await objection(brokerRequest(connection, subject, {})) }).toMatchObject({ said: expect.stringContaining('Permissions Violation') });
      }
    }
  });

  test('a service cannot append for another context, nor ask or answer for another service', async () => {
    const { connection } = await as('autoscaler');
    for (const subject of ['ev.access.api-key.key_1', 'ev.fleet.replica.rep_1', 'cmd.registry.deploy-endpoint', 'cmd.router.admit', 'tele.router.inst_1']) {
      expect(await objection(connection.request(subject, '{}', { timeout: 500 }))).toContain('Permissions Violation');
    }
    for (const subject of ['cmd.router.>', '_INBOX.>', '_INBOX.gateway.>', 'ev.>', '$JS.>', '>']) {
      const closed = new Promise<string>((resolve) => connection.subscribe(subject, { callback: (error, message) => resolve(error?.message ?? message.subject) }));
      expect(await closed).toContain('Permissions Violation');
    }
  });

  test('what a service has the broker copy into another context is no event there', async () => {
    const agent = await as('agent');
    const forged = { ref: { context: 'fleet' as const, aggregate: 'node', id: 'node_1' }, commandId: 'cmd_1', expected: 'any' as const, source: 'penstock/agent', correlationId: 'c', causationId: 'c', nowMs: Date.now(), events: [nodeLost] };
    await new NatsEventLog(agent, { consumerName: 'agent' }).append(forged);
    agent.connection.publish('$JS.API.DIRECT.GET.EV_FLEET', JSON.stringify({ last_by_subj: 'ev.fleet.node.node_1' }), { reply: 'ev.scaling.endpoint.ep_1' });
    const scaling = new NatsEventLog(await as('autoscaler'), { consumerName: 'autoscaler' });
    await eventually(() => scaling.bounds('EV_SCALING'), ({ lastSequence }) => lastSequence === 1);
    for await (const batch of scaling.read('EV_SCALING')) expect(batch).toEqual([]);
    await expect(scaling.load({ context: 'scaling', aggregate: 'endpoint', id: 'ep_1' })).rejects.toThrow(/copied here/);
    const letters = await new DeadLetters(await as('gateway')).list();
    expect(letters).toMatchObject([{ stream: 'EV_SCALING', consumer: 'autoscaler', reason: expect.stringContaining('copied here') }]);
  });

  test('the sample configuration for a server of one\'s own is up to date and valid', async () => {
    expect(await readFile(join(root, 'deploy/nats/authorization.conf'), 'utf8')).toBe(authorizationConfig());
    const { path } = await ensureRuntime('nats-server');
    const passwords = Object.fromEntries(['operator', ...natsServiceNames].map((user) => [passwordVariable(user), `secret-of-${user}`]));
    const { stderr } = await promisify(execFile)(path, ['-t', '-c', join(root, 'deploy/nats/nats-server.conf')], { env: { ...process.env, ...passwords } });
    expect(stderr).toContain('is valid');
  });
});
