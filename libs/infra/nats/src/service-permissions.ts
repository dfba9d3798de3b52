import { ANSWERS_BUCKET, ANSWERS_STREAM } from './answers-bucket.js';
import { contexts, streamOf, type Context } from '@penstock/contract-events';

/** A NATS user's allow-lists: everything else is refused. There are no deny rules, which wildcards and queue groups have slipped past in the past. */
export interface NatsPermissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

interface ServiceAccess {
  /** Serves `cmd.<service>.>` and `qry.<service>.>`. */
  readonly serves: boolean;
  /** Services whose commands and queries it sends. */
  readonly asks: readonly string[];
  /** Contexts whose events it reads. */
  readonly reads: readonly Context[];
  /** Contexts whose events it appends; it reads them as well. */
  readonly writes: readonly Context[];
  /** Live signals that it sends: `tele.<kind>.*`. */
  readonly tells: readonly string[];
  /** Live signals that it listens to. */
  readonly hears: readonly string[];
  /** Durable consumers whose events it acknowledges and takes again. */
  readonly durables: readonly { readonly context: Context; readonly name: string }[];
  /** Lists, re-drives and discards dead letters. */
  readonly tendsDeadLetters: boolean;
  /** Stores answers for requests that are told again, and for callers that come back for them. */
  readonly storesAnswers: boolean;
  /** Makes the streams and raises their limits. Every other service waits until they are there. */
  readonly makesStreams: boolean;
}

const nothing: ServiceAccess = { serves: true, asks: [], reads: [], writes: [], tells: [], hears: [], durables: [], tendsDeadLetters: false, storesAnswers: false, makesStreams: false };

/** Streams beside those of the contexts. */
const DEAD_LETTERS = 'DLQ';
const SNAPSHOTS = 'KV_SNAPSHOTS';
const MADE_STREAMS = [...contexts.map(streamOf), DEAD_LETTERS, 'TELEMETRY', SNAPSHOTS, ANSWERS_STREAM];

/**
 * What each service may do on NATS. The one place to change when a service starts to read another context, to send a new signal or to
 * ask another service; a service that goes beyond its row fails its own start or logs `Permissions Violation`.
 */
const serviceAccess = {
  gateway: {
    ...nothing, serves: false,
    asks: ['registry', 'scheduler', 'autoscaler', 'router', 'metering', 'batch'],
    reads: contexts, writes: ['access', 'usage'], tells: ['prompts'], hears: ['pull', 'router', 'recall', 'prompts', 'adapters'], tendsDeadLetters: true, storesAnswers: true,
  },
  router: { ...nothing, asks: ['router', 'autoscaler'], reads: ['registry', 'fleet'], writes: ['routing'], tells: ['endpoint', 'router', 'recall', 'prompts'], hears: ['router', 'prompts', 'adapters'] },
  registry: { ...nothing, writes: ['registry'], makesStreams: true },
  scheduler: { ...nothing, reads: ['access', 'registry', 'scaling'], writes: ['fleet'], tells: ['scheduler'], hears: ['node', 'pull', 'replica', 'scheduler'] },
  autoscaler: { ...nothing, reads: ['registry', 'fleet'], writes: ['scaling'], hears: ['endpoint'] },
  metering: { ...nothing, reads: ['usage'], durables: [{ context: 'usage', name: 'metering-usage' }] },
  batch: { ...nothing, writes: ['batch'] },
  agent: { ...nothing, serves: false, reads: ['registry'], writes: ['fleet'], tells: ['node', 'pull', 'replica', 'adapters'] },
  // Stands for the nodes of a cluster in the place of agents.
  'replica-driver': { ...nothing, serves: false, reads: ['registry', 'scaling'], writes: ['fleet'], tells: ['node', 'pull', 'replica', 'adapters'] },
} satisfies Readonly<Record<string, ServiceAccess>>;

export type NatsServiceName = keyof typeof serviceAccess;

export const natsServiceNames = Object.keys(serviceAccess) as readonly NatsServiceName[];

/** Replies to a user of this name come to subjects below it, which nobody else may listen to. */
export function inboxPrefixOf(user: string): string {
  return user === '' ? '_INBOX' : `_INBOX.${user.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`;
}

/** The allow-lists of one service, made from its row of the table. */
export function permissionsOf(service: NatsServiceName): NatsPermissions {
  const access: ServiceAccess = serviceAccess[service];
  const streams = [...new Set([...access.reads, ...access.writes])].map(streamOf);
  return {
    publish: [
      '$JS.API.INFO',
      ...streams.flatMap(readingSubjects),
      ...snapshotSubjects(service),
      ...access.writes.map((context) => `ev.${context}.>`),
      ...streams.map((stream) => `dlq.${stream}.*.*`),
      ...access.asks.flatMap(commandSubjects),
      ...access.tells.map((kind) => `tele.${kind}.*`),
      ...access.durables.flatMap(({ context, name }) => [`$JS.ACK.${streamOf(context)}.${name}.>`, `$JS.ACK.*.*.${streamOf(context)}.${name}.>`]),
      // Answers go to whoever asked, and nowhere but to inboxes: `allow_responses` would let a request name any subject for its answer.
      ...(access.serves || access.durables.length > 0 ? ['_INBOX.>'] : []),
      ...(access.tendsDeadLetters ? [`$JS.API.DIRECT.GET.${DEAD_LETTERS}`, `$JS.API.STREAM.MSG.GET.${DEAD_LETTERS}`, `$JS.API.STREAM.MSG.DELETE.${DEAD_LETTERS}`, 'redrive.*'] : []),
      ...(access.storesAnswers ? [`$KV.${ANSWERS_BUCKET.bucket}.>`, `$JS.API.DIRECT.GET.${ANSWERS_STREAM}.$KV.${ANSWERS_BUCKET.bucket}.>`] : []),
      ...MADE_STREAMS.flatMap((stream) => (access.makesStreams ? [`$JS.API.STREAM.INFO.${stream}`, `$JS.API.STREAM.CREATE.${stream}`, `$JS.API.STREAM.UPDATE.${stream}`] : [`$JS.API.STREAM.INFO.${stream}`])),
    ].filter((subject, index, all) => all.indexOf(subject) === index),
    subscribe: [
      `${inboxPrefixOf(service)}.>`,
      ...(access.serves ? commandSubjects(service) : []),
      ...access.hears.map((kind) => `tele.${kind}.*`),
      ...access.durables.map(({ name }) => `redrive.${name}`),
    ],
  };
}

/** True for the one service that makes the streams. */
export function makesStreams(service: string): boolean {
  return service in serviceAccess && serviceAccess[service as NatsServiceName].makesStreams;
}

function commandSubjects(service: string): string[] {
  return [`cmd.${service}.>`, `qry.${service}.>`];
}

/** Loads by direct get, looks at the leader's newest, and reads in order with consumers. */
function readingSubjects(stream: string): string[] {
  return [
    `$JS.API.DIRECT.GET.${stream}`,
    `$JS.API.STREAM.MSG.GET.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.*`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
    `$JS.API.CONSUMER.DELETE.${stream}.*`,
  ];
}

/** Each service has its snapshots below its own name. */
function snapshotSubjects(service: string): string[] {
  return [`$KV.SNAPSHOTS.${service}.>`, `$JS.API.DIRECT.GET.${SNAPSHOTS}.$KV.SNAPSHOTS.${service}.>`];
}
