import type { DeploymentAdviceView } from '@penstock/contract-commands';
import type { PlanBody } from '@penstock/contract-http';
import { table } from '../terminal/table.js';

/** Rows of one list that are shown; `--json` has all. */
const ROWS_SHOWN_MAX = 20;

type Plan = PlanBody['plan'];
type Seat = Plan['placed'][number];

/** What would become of the fleet, for people. `nameNode` knows host names. */
export function printPlan({ plan, added, requests_per_s: rate, exact, profiles, advice }: PlanBody, nameNode: (nodeId: string) => string): readonly string[] {
  return [
    plan.fits ? 'It fits. Nothing was changed.' : 'It does not fit. Nothing was changed.',
    ...(added.length === 0 ? [] : [`added: ${added.join(', ')}`]),
    ...(rate === null ? [] : [`for ${round(rate)} requests/s`]),
    ...(exact === true ? ['the same request gives the same bits: weights and type of hardware stay as they are'] : []),
    ...section('PLACED', ['ON', 'GPUS', 'TAKES', 'PRECISION'], plan.placed.map((seat) => [where(seat, nameNode), seat.gpuType, takes(seat), seat.precision])),
    ...section('MOVES', ['REPLICA', 'FROM', 'TO', 'TAKES'], plan.moves.map((move) => [move.replicaId, move.fromNodeIds.map(nameNode).join(' '), where(move, nameNode), takes(move)])),
    ...section('REFUSED', ['WHAT', 'BECAUSE'], plan.refused.map((one) => [one.replicaId ?? one.endpointId, one.reason])),
    ...(plan.brokenReservations.length === 0 ? [] : ['', `RESERVATIONS WITHOUT ROOM: ${plan.brokenReservations.join(' ')}`]),
    ...section('PROFILES', ['ON', 'PRECISION', 'KNEE', 'FROM'], profiles.map((profile) => [`${profile.tensorParallel} x ${profile.gpuType}${profile.slice === null ? '' : ` ${profile.slice}`}`, profile.precision, knee(profile.knee), profile.knee === null ? (profile.kvTokens?.from ?? '-') : `${profile.knee.from}: ${profile.knee.source}`])),
    '', 'COST', table(['', 'GPUS IN USE', '$/H', 'AT LEAST', 'OVER'], [['now', ...cost(plan.before)], ['then', ...cost(plan.after)]]),
    ...(advice === null ? [] : ['', 'ADVICE', ...printAdvice(advice)]),
  ];
}

/** Advice in sentences: what, what it saves, what it loses, and what was not said although it would be cheaper. */
export function printAdvice(advice: DeploymentAdviceView): readonly string[] {
  const others = advice.others.map((way) => `  ${way.replicas} ${way.replicas === 1 ? 'replica' : 'replicas'} on ${round(way.gpus)} x ${way.gpuType} at ${way.precision}: $${way.dollarsPerHour.toFixed(2)}/h (${way.figuresFrom})`);
  return [advice.says, ...advice.vetoes.map(({ what, reason }) => `No advice on ${what}: ${reason}.`), ...(others.length === 0 ? [] : ['Other ways:', ...others])];
}

function section(title: string, head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  const rest = rows.length - ROWS_SHOWN_MAX;
  return ['', title, table(head, rows.slice(0, ROWS_SHOWN_MAX)), ...(rest > 0 ? [`and ${rest} more: --json shows all`] : [])];
}

function where({ members }: Seat, nameNode: (nodeId: string) => string): string {
  return members.map(({ nodeId, gpus }) => `${nameNode(nodeId)} #${gpus.join(',')}`).join(' + ');
}

function takes({ migProfile, computeMilli, members }: Seat): string {
  const gpus = members.reduce((sum, member) => sum + member.gpus.length, 0);
  if (migProfile !== null) return migProfile;
  return gpus > 1 ? `${gpus} GPUs` : computeMilli === 0 ? 'memory' : `${computeMilli / 10} %`;
}

function knee(point: PlanBody['profiles'][number]['knee']): string {
  return point === null ? 'keeps the objective at no load' : `${round(point.requestsPerS)} requests/s at ${point.concurrency} at once, ${Math.round(point.ttftMs)} ms, ${round(point.itlMs)} ms`;
}

function cost({ gpusInUse, gpus, dollarsPerHour, lowerBoundDollarsPerHour }: Plan['before']): readonly string[] {
  const over = lowerBoundDollarsPerHour > 0 ? `${((dollarsPerHour / lowerBoundDollarsPerHour - 1) * 100).toFixed(1)} %` : '-';
  return [`${gpusInUse} of ${gpus}`, dollarsPerHour.toFixed(2), lowerBoundDollarsPerHour.toFixed(2), over];
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
