import { DeadLettersList, DeadLettersRedrive } from './commands/dead-letters.js';
import { Deploy } from './commands/deploy.js';
import { Doctor } from './commands/doctor.js';
import { EnginesAttach } from './commands/engines.js';
import { EventsShow, EventsTail } from './commands/events.js';
import { Fleet } from './commands/fleet.js';
import { KeysCreate, KeysList, KeysRevoke, KeysRotate } from './commands/keys.js';
import { LimitsSet, LimitsShow } from './commands/limits.js';
import { Models } from './commands/models.js';
import { NatsUsers } from './commands/nats-users.js';
import { NodesCordon, NodesDrain, NodesList, NodesReclaim, NodesUncordon } from './commands/nodes.js';
import { PlanDeploy, PlanNodes } from './commands/plan.js';
import { Ps } from './commands/ps.js';
import { ReplayVerify } from './commands/replay.js';
import { ReservationsCreate, ReservationsList, ReservationsRelease } from './commands/reservations.js';
import { TrafficClear, TrafficSet, TrafficShow } from './commands/traffic.js';
import { Up } from './commands/up.js';
import { Usage } from './commands/usage.js';
import { WhyEndpoint, WhyReplica, WhyRequest } from './commands/why.js';

/** Every command by its words, as oclif finds them. */
export const commandTable = {
  'dead-letters:list': DeadLettersList,
  'dead-letters:redrive': DeadLettersRedrive,
  deploy: Deploy,
  doctor: Doctor,
  'engines:attach': EnginesAttach,
  'events:show': EventsShow,
  'events:tail': EventsTail,
  fleet: Fleet,
  'keys:create': KeysCreate,
  'keys:list': KeysList,
  'keys:revoke': KeysRevoke,
  'keys:rotate': KeysRotate,
  'limits:set': LimitsSet,
  'limits:show': LimitsShow,
  models: Models,
  'nats-users': NatsUsers,
  'nodes:cordon': NodesCordon,
  'nodes:drain': NodesDrain,
  'nodes:ls': NodesList,
  'nodes:reclaim': NodesReclaim,
  'nodes:uncordon': NodesUncordon,
  'plan:deploy': PlanDeploy,
  'plan:nodes': PlanNodes,
  ps: Ps,
  'replay:verify': ReplayVerify,
  'reservations:create': ReservationsCreate,
  'reservations:ls': ReservationsList,
  'reservations:release': ReservationsRelease,
  'traffic:clear': TrafficClear,
  'traffic:set': TrafficSet,
  'traffic:show': TrafficShow,
  up: Up,
  usage: Usage,
  'why:endpoint': WhyEndpoint,
  'why:replica': WhyReplica,
  'why:request': WhyRequest,
};
