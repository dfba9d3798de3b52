import { routes } from '@penstock/contract-http';
import { startService, type RunningService } from '@penstock/feature-shell';
import { KeyUses } from './access/key-uses.js';
import { AdmissionDesk } from './chat/admission.js';
import type { ChatParts } from './chat/chat-parts.js';
import { ExchangeWatch } from './chat/exchange-watch.js';
import { HEDGED_REQUESTS_MAX, HedgePolicy } from './frame/hedge-policy.js';
import { LeaseBook } from './chat/lease-book.js';
import { LentSlots } from './chat/lent-slots.js';
import { ReplicaChooser } from './chat/own-choice.js';
import { ReplicaClients } from './chat/replica-clients.js';
import { RetryBudgets } from './chat/retry-budget.js';
import { RouterWatch } from './chat/router-watch.js';
import { RefusalBook } from './explain/refusal-book.js';
import { RequestBook } from './explain/request-book.js';
import { openRoutingKnowledge, type RoutingKnowledge } from './chat/routing-knowledge.js';
import type { GatewayConfig } from './gateway-config.js';
import { GatewayMetrics } from './gateway-metrics.js';
import { GatewayModule, routeGroups } from './gateway.module.js';
import type { GatewayPorts } from './gateway-ports.js';
import { closeViews, followViews, type GatewayViews } from './gateway-views.js';
import { CallerCheck } from './http/caller.js';
import { answerCrossOrigin } from './http/cross-origin.js';
import { FaultFilter } from './http/fault-filter.js';
import { OpenStreams } from './http/open-streams.js';
import { DirectRoutes, type DirectRoute } from './http/direct-routes.js';
import { DirectServer } from './http/direct-server.js';
import { LoadGuard } from './http/load-guard.js';
import { registerRoutes } from './http/register-routes.js';
import type { RouteGroup } from './http/route-call.js';
import { requestIdSource, serverOptions } from './http/server-options.js';
import { QuotaDesk } from './limits/quota-desk.js';
import { RequestLimits } from './limits/request-limits.js';
import { loadingComment } from './loading/loading-eta.js';
import { SelfCall } from './stored/self-call.js';
import { StoredAnswers } from './stored/stored-answers.js';
import { StoredExchange } from './stored/stored-exchange.js';

/** Of the time to drain, the part that answers get to finish by themselves; the rest is for ending the others and for usage. */
const FINISH_SHARE = 0.7;
/** How long a gateway that stops waits for the event log to take its last records; what is left stays in the spool. */
const PUBLISH_SHARE = 0.2;

/** At twice its knee a loop takes turns of 15 ms; so many sockets take 4,000 new connections a second then. */
const ACCEPT_QUEUES = 64;

/** How long it waits for answers that it made to be stored. */
const STORE_SHARE = 0.1;

/** Starts a gateway: the public API, the admin API, and the path of every request. */
export async function startGateway(config: GatewayConfig, ports: GatewayPorts): Promise<RunningService> {
  const views = await followViews(ports);
  const metrics = new GatewayMetrics(ports.usage);
  const gatewayId = config.GATEWAY_ID ?? ports.ids.next('inst');
  const router = new RouterWatch(ports.clock, config.ROUTER_SILENCE_MS_MAX);
  await router.start(ports.signals);
  const quotas = new QuotaDesk(ports);
  const lent = new LentSlots(gatewayId, ports);
  await lent.start(ports.signals, views.fleet);
  const knowledge = await openRoutingKnowledge(gatewayId, views, ports);
  const chat = chatParts(config, ports, views, { gatewayId, router, metrics, lent, knowledge, limits: new RequestLimits(quotas, () => views.access.state()) });
  router.onNew(() => {
    chat.leases.renewAll();
    lent.reportSoon();
  });
  const guard = new LoadGuard(ports.timers, chat.logger, config.SHED_LOOP_LAG_MS, () => chat.watch.count);
  const uses = new KeyUses(gatewayId, () => views.access.state(), ports);
  // Another gateway on the same port may take the call, so the token that all of them know comes first.
  const selfToken = ports.keys.mint().key;
  const self = new SelfCall(config.INTERNAL_TOKEN ?? selfToken, () => state.ownUrl ?? '');
  const answers = new StoredAnswers({ records: ports.answers, clock: ports.clock, timers: ports.timers, logger: chat.logger, self });
  const stored = new StoredExchange(answers, ports, views);
  const callers = new CallerCheck({ keys: ports.keys, access: () => views.access.state(), now: () => ports.clock.now(), adminKey: config.ADMIN_KEY, internalToken: config.INTERNAL_TOKEN, selfToken, onUse: (keyId) => uses.note(keyId) });
  const state: { isDraining: boolean; streams?: OpenStreams; direct?: DirectServer; ownUrl?: string } = { isDraining: false };
  const close = async (): Promise<void> => {
    chat.watch.stop();
    chat.leases.stop();
    guard.stop();
    await lent.close();
    quotas.stop();
    uses.stop();
    await self.close();
    await Promise.all([router.close(), knowledge.close(), chat.clients.close(), closeViews(views)]);
  };
  try {
    const service = await startService({
      name: 'gateway',
      module: GatewayModule.with(ports, views, chat, { uses, answers, stored, refusals: new RefusalBook() }),
      metrics: metrics.registry,
      fastifyOptions: serverOptions(ports.ids, callers),
      acceptQueues: ACCEPT_QUEUES,
      configureHttp: async (instance, app) => {
        app.useGlobalFilters(new FaultFilter(chat.logger));
        state.streams = app.get(OpenStreams);
        const groups = routeGroups.map((group): RouteGroup => app.get<RouteGroup>(group));
        answerCrossOrigin(instance, config.CORS_ORIGINS);
        const parts = { config, callers, metrics, guard, logger: chat.logger, isDraining: () => state.isDraining };
        await registerRoutes(instance, groups, { ...parts, stored });
        const direct = new DirectRoutes({ ...parts, requestIdOf: requestIdSource(ports.ids, callers) }, directRoutes(groups));
        direct.attach(instance.server);
        state.direct = new DirectServer(instance.server, direct, ports.timers);
      },
      onDrain: async () => {
        state.isDraining = true;
        state.streams?.closeAll();
        await chat.watch.drain(config.DRAIN_TIMEOUT_MS * FINISH_SHARE);
        await Promise.all([answers.drain(config.DRAIN_TIMEOUT_MS * STORE_SHARE), uses.flush()]);
        await ports.usage.drain(config.DRAIN_TIMEOUT_MS * PUBLISH_SHARE);
        state.direct?.close();
      },
      onClose: close,
    }, config, ports);
    state.ownUrl = loopbackUrl(service.url);
    return service;
  } catch (error) {
    await close();
    throw error;
  }
}

function directRoutes(groups: readonly RouteGroup[]): DirectRoute[] {
  const contracts = new Map(routes.map((contract) => [`${contract.method} ${contract.path}`, contract]));
  return groups.flatMap((group) => group.handlers).flatMap(({ route, direct }) => {
    const contract = contracts.get(route);
    return direct === undefined || contract === undefined ? [] : [{ contract, serve: direct }];
  });
}

/** Where this process reaches itself, whichever addresses it listens on. */
function loopbackUrl(url: string): string {
  const { port, protocol, hostname } = new URL(url);
  return `${protocol}//${hostname === '0.0.0.0' || hostname === '[::]' ? '127.0.0.1' : hostname}:${port}`;
}

function chatParts(config: GatewayConfig, ports: GatewayPorts, views: GatewayViews, own: { gatewayId: string; router: RouterWatch; metrics: GatewayMetrics; limits: RequestLimits; lent: LentSlots; knowledge: RoutingKnowledge }): ChatParts {
  const leases = new LeaseBook(own.gatewayId, own.lent, ports);
  const { memories, adapters } = own.knowledge;
  const chooser = new ReplicaChooser(views.fleet, leases, memories, { ...ports, adapters });
  const desk = new AdmissionDesk({ gatewayId: own.gatewayId, waitMsMax: config.ADMISSION_WAIT_MS_MAX, commands: ports.commands, timers: ports.timers, router: own.router, chooser, leases, lent: own.lent, memories, adapters });
  const retries = new RetryBudgets(() => ports.clock.now());
  return { config, clock: ports.clock, logger: ports.logger.child({ service: 'gateway' }), desk, leases, clients: new ReplicaClients(), watch: new ExchangeWatch(ports), metrics: own.metrics, retries, hedges: new HedgePolicy(retries), hedged: new RequestBook(HEDGED_REQUESTS_MAX), timers: ports.timers, limits: own.limits, loading: (endpointId) => loadingComment(views.fleet.state(), endpointId, ports.clock.now()) };
}
