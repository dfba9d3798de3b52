import { contexts, streamOf, type Context } from '@penstock/contract-events';
import { serviceNames, type ServiceName } from '@penstock/infra-composition';
import { connectionOptions } from '@penstock/infra-nats';
import { connect, headers, type NatsConnection } from '@nats-io/transport-node';
import type { Attack } from './attack.js';

/** Who may append to which context. Written down here on its own, so that a slip in the table that the users are made from shows. */
const WRITERS: Readonly<Record<Context, readonly ServiceName[]>> = {
  access: ['gateway'], registry: ['registry'], fleet: ['scheduler', 'agent'], scaling: ['autoscaler'], routing: ['router'], usage: ['gateway'], billing: [], batch: ['batch'],
};
/** Who may ask whom. */
const ASKERS: Readonly<Record<ServiceName, readonly ServiceName[]>> = {
  gateway: [], agent: [], registry: ['gateway'], scheduler: ['gateway'], autoscaler: ['gateway', 'router'], router: ['gateway', 'router'], metering: ['gateway'], batch: ['gateway'],
};
/** Who may read keys and limits: gateways check them, and the scheduler takes the tier of an organisation for its share. */
const ACCESS_READERS: readonly ServiceName[] = ['gateway', 'scheduler'];
const TELLERS: Readonly<Record<string, ServiceName>> = { node: 'agent', pull: 'agent', replica: 'agent', endpoint: 'router', router: 'router', scheduler: 'scheduler' };

const REFUSED_WAIT_MS = 2_000;

/** The credentials of each service, tried on what belongs to the others and on the broker's own interface: all of it is refused. */
export async function natsRights(attack: Attack): Promise<void> {
  attack.say('NATS credentials of each service on the subjects of every other');
  const urls = attack.installation.settings.natsServiceUrls;
  for (const service of serviceNames) {
    const connection = await connect({ ...connectionOptions({ url: urls?.[service] ?? attack.installation.settings.natsUrl, name: `hostile/${service}` }), reconnect: false });
    for (const subject of foreignPublishes(service)) attack.attempt('nats', `${service} publishes to ${subject}`, await publishes(connection, subject));
    for (const [subject, queue] of foreignSubscriptions(service)) attack.attempt('nats', `${service} listens to ${subject}${queue === undefined ? '' : ` in ${queue}`}`, await subscribes(connection, subject, queue));
    await connection.close();
  }
  await wrongCredentials(attack);
  await copiesAreNoEvents(attack);
}

function foreignPublishes(service: ServiceName): readonly string[] {
  const others = serviceNames.filter((name) => name !== service);
  const foreignContexts = contexts.filter((context) => !WRITERS[context].includes(service));
  const streams = [...contexts.map(streamOf), 'DLQ', 'TELEMETRY', 'KV_SNAPSHOTS', 'KV_ANSWERS'];
  const verbs = ['DELETE', 'PURGE', 'SNAPSHOT', 'RESTORE', 'LEADER.STEPDOWN', 'PEER.REMOVE', ...(service === 'registry' ? [] : ['CREATE', 'UPDATE'])];
  return [
    ...foreignContexts.map((context) => `ev.${context}.thing.id_1`),
    ...serviceNames.filter((name) => !ASKERS[name].includes(service)).flatMap((name) => [`cmd.${name}.verify-projections`, `cmd.${name}.x`, `qry.${name}.x`]),
    ...Object.entries(TELLERS).filter(([, teller]) => teller !== service).map(([kind]) => `tele.${kind}.id_1`),
    ...others.map((name) => `$KV.SNAPSHOTS.${name}.view.head`),
    ...others.map((name) => `$JS.API.DIRECT.GET.KV_SNAPSHOTS.$KV.SNAPSHOTS.${name}.view.head`),
    ...streams.flatMap((stream) => verbs.map((verb) => `$JS.API.STREAM.${verb}.${stream}`)),
    ...(service === 'gateway' ? [] : ['$JS.API.STREAM.MSG.DELETE.DLQ', 'redrive.metering-usage']),
    ...contexts.map((context) => `$JS.API.STREAM.MSG.DELETE.${streamOf(context)}`),
    ...(ACCESS_READERS.includes(service) ? [] : ['$JS.API.CONSUMER.CREATE.EV_ACCESS.spy', '$JS.API.CONSUMER.DELETE.EV_ACCESS.spy', '$JS.API.DIRECT.GET.EV_ACCESS', '$JS.API.STREAM.MSG.GET.EV_ACCESS']),
    ...(service === 'metering' ? [] : ['$JS.ACK.EV_USAGE.metering-usage.1.1.1.1.1']),
    '$JS.API.CONSUMER.CREATE.KV_SNAPSHOTS.spy', '$JS.API.CONSUMER.DURABLE.CREATE.EV_ACCESS.spy', '$JS.API.CONSUMER.LIST.EV_ACCESS', '$JS.API.STREAM.LIST', '$JS.API.STREAM.NAMES', '$JS.API.STREAM.CREATE.SPY',
    '$JS.API.STREAM.TEMPLATE.CREATE.x', '$JS.API.META.LEADER.STEPDOWN', '$JS.API.SERVER.REMOVE', '$JS.API.ACCOUNT.PURGE.x', '$JS.API.>', '$SYS.REQ.SERVER.PING', '$SYS.REQ.ACCOUNT.PING', '$SRV.PING', 'dlq.OTHER.x.1', 'telemetry.x', 'anything', '_INBOX_other.x',
  ];
}

function foreignSubscriptions(service: ServiceName): readonly (readonly [string, string | undefined])[] {
  const others = serviceNames.filter((name) => name !== service);
  return [
    ...others.flatMap((name): [string, string | undefined][] => [[`cmd.${name}.>`, undefined], [`cmd.${name}.>`, name], [`qry.${name}.*`, name], [`_INBOX.${name}.>`, undefined]]),
    ...['>', '*', '*.>', 'cmd.>', 'cmd.*.*', 'qry.>', 'ev.>', 'ev.*.*.*', 'tele.>', '_INBOX.>', '_INBOX.*.*', '$JS.>', '$JS.API.>', '$JS.ACK.>', '$JS.EVENT.>', '$KV.>', '$SYS.>', 'dlq.>', 'redrive.*'].flatMap((subject): [string, string | undefined][] => [[subject, undefined], [subject, 'spies']]),
    ...contexts.map((context): [string, undefined] => [`ev.${context}.>`, undefined]),
  ];
}

/** A refused publish is told to the connection, and a request fails with it at once; anything else went through. */
async function publishes(connection: NatsConnection, subject: string): Promise<string | undefined> {
  try {
    const reply = await connection.request(subject, '{}', { timeout: REFUSED_WAIT_MS, noMux: false });
    return `was answered: ${reply.string().slice(0, 120)}`;
  } catch (error) {
    const text = error instanceof Error ? `${error.message} ${error.cause instanceof Error ? error.cause.message : ''}` : String(error);
    return /Permissions Violation/i.test(text) ? undefined : `was not refused: ${text.slice(0, 120)}`;
  }
}

async function subscribes(connection: NatsConnection, subject: string, queue: string | undefined): Promise<string | undefined> {
  const refused = Promise.withResolvers<string | undefined>();
  const subscription = connection.subscribe(subject, { ...(queue === undefined ? {} : { queue }), callback: (error, message) => refused.resolve(error === null ? `heard ${message.subject}` : undefined) });
  const limit = setTimeout(() => refused.resolve('was not refused'), REFUSED_WAIT_MS);
  const outcome = await refused.promise;
  clearTimeout(limit);
  if (!subscription.isClosed()) subscription.unsubscribe();
  return outcome;
}

async function wrongCredentials(attack: Attack): Promise<void> {
  const { natsUrl, natsServiceUrls } = attack.installation.settings;
  const server = new URL(natsUrl).host;
  const passwordOf = (url: string | undefined): string => new URL(url ?? natsUrl).password;
  const tries: readonly (readonly [string, string | undefined, string | undefined])[] = [
    ['nobody', undefined, undefined], ['an empty password', 'penstock', ''], ['a guess', 'penstock', 'penstock'], ['an unknown user', 'admin', 'admin'],
    ['the router\'s password for the operator', 'penstock', passwordOf(natsServiceUrls?.router)], ['the agent\'s password for the gateway', 'gateway', passwordOf(natsServiceUrls?.agent)],
  ];
  for (const [name, user, pass] of tries) {
    const connection = await connect({ servers: server, reconnect: false, timeout: REFUSED_WAIT_MS, ...(user === undefined ? {} : { user, pass: pass ?? '' }) }).catch(() => undefined);
    attack.attempt('nats', `connecting as ${name}`, connection === undefined ? undefined : 'was let in');
    await connection?.close();
  }
}

/** Whoever may read a stream can have the broker answer to any subject. What lands in a stream that way is no event, and no command is carried out. */
async function copiesAreNoEvents(attack: Attack): Promise<void> {
  const { installation } = attack;
  const connection = await connect(connectionOptions({ url: installation.settings.natsServiceUrls?.agent ?? '', name: 'hostile/agent' }));
  const before = await keyCount(attack);
  const forged = { id: 'x.0', type: 'api-key.created.v1', source: 'penstock/gateway', time: new Date().toISOString(), correlationId: 'c', causationId: 'c', data: { keyId: 'key_forged', organisationId: attack.attacker.organisationId, projectId: attack.attacker.projectId, name: 'forged', kind: 'admin', hmac: 'a'.repeat(64), prefix: 'sk-ps-forg', lastFour: 'aaaa', models: null, expiresAt: null } };
  const marks = headers();
  marks.set('Nats-Msg-Id', 'forged');
  await connection.request('ev.fleet.node.node_forged', JSON.stringify(forged), { headers: marks, timeout: REFUSED_WAIT_MS });
  for (const target of ['ev.access.api-key.key_forged', 'cmd.registry.retire-endpoint', 'cmd.router.release']) {
    connection.publish('$JS.API.DIRECT.GET.EV_FLEET', JSON.stringify({ last_by_subj: 'ev.fleet.node.node_forged' }), { reply: target });
  }
  await connection.flush();
  await connection.close();
  await new Promise((resolve) => setTimeout(resolve, REFUSED_WAIT_MS));
  attack.attempt('nats', 'the agent forges an API key through the broker', (await keyCount(attack)) === before ? undefined : 'the key is there');
}

async function keyCount(attack: Attack): Promise<number> {
  return ((await attack.installation.admin('GET', '/admin/v1/keys')) as { data: unknown[] }).data.length;
}
