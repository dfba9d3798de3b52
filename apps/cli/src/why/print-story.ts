import { formatBytes } from '../terminal/format.js';
import { table } from '../terminal/table.js';
import type { EndpointStory, ReplicaStory, StoryInputs, TimelineEntry } from './story.js';

/** Decisions that are shown of an endpoint; `--json` has all. */
const DECISIONS_SHOWN_MAX = 10;

type NameNode = (nodeId: string) => string;

export function printReplica(story: ReplicaStory, nameNode: NameNode): readonly string[] {
  const { placement, decision } = story;
  return [
    `${story.replicaId} is on ${placement.members.map(({ nodeId, acceleratorIds }) => `${nameNode(nodeId)}, ${acceleratorIds.join(' ') || 'no accelerator'}`).join('; ')}${placement.mig === null ? '' : `, ${placement.mig.profile} at slice ${placement.mig.start}`}`,
    `  because ${placement.reason.summary}`,
    decision === null ? '  wanted by a decision that the log names only by its id' : `  wanted since ${decision.at}: ${decision.from} -> ${decision.to} replicas by the rule ${decision.rule}, ${decision.reason}`,
    '', 'INPUTS', ...printInputs(story.inputs), `  set aside: ${formatBytes(placement.reservedBytes)}${placement.computeMilli === 0 ? '' : `, ${placement.computeMilli / 10} % of the compute`}${placement.option.dollarsPerHour === null ? '' : `, ${placement.option.dollarsPerHour.toFixed(2)} dollars an hour (${placement.option.market})`}`,
    ...(placement.reason.plan === null ? [] : [`  the whole plan: ${placement.reason.plan.dollarsPerHour.toFixed(2)} dollars an hour, at least ${placement.reason.plan.lowerBoundDollarsPerHour.toFixed(2)} by any plan`]),
    '', 'CANDIDATES', table(['NODE', 'SCORE', ''], placement.reason.candidates.map((candidate) => [nameNode(candidate.nodeId), candidate.score?.toFixed(2) ?? '-', candidate.excluded ?? (placement.members.some(({ nodeId }) => nodeId === candidate.nodeId) ? 'chosen' : '')])),
    '', 'HISTORY', printTimeline(story.history),
    '', 'LED TO IT', printTimeline(story.correlated),
  ];
}

export function printEndpoint(story: EndpointStory, nameNode: NameNode): readonly string[] {
  const [newest] = story.decisions;
  const { refusal } = story;
  return [
    `${story.inputs?.name ?? story.endpointId} (${story.endpointId}) wants ${newest?.to ?? 0} replicas${newest === undefined ? ': nothing was decided yet' : `: ${newest.reason} (${newest.rule}, ${newest.at})`}`,
    ...(refusal === null ? [] : [`  and has ${refusal.placedReplicas}: ${refusal.reason} (${refusal.code}, ${refusal.at})`, ...(refusal.hint === null ? [] : [`    ${refusal.hint}`]), ...refusal.candidates.map((candidate) => `    ${nameNode(candidate.nodeId)}: ${candidate.excluded}`)]),
    '', 'INPUTS', ...printInputs(story.inputs),
    '', 'DECISIONS', table(['AT', 'REPLICAS', 'RULE', 'REASON', 'SIGNALS'], story.decisions.slice(0, DECISIONS_SHOWN_MAX).map((decision) => [decision.at, `${decision.from} -> ${decision.to}`, decision.rule, decision.reason, Object.entries(decision.signals).map(([name, value]) => `${name} ${value}`).join(' ')])),
    '', 'PLACEMENTS', table(['REPLICA', 'NODE', 'BECAUSE'], story.placements.map((placement) => [placement.replicaId, placement.members.map(({ nodeId }) => nameNode(nodeId)).join(' '), placement.reason.summary])),
    '', 'HISTORY', printTimeline(story.history),
  ];
}

function printInputs(inputs: StoryInputs | null): readonly string[] {
  if (inputs === null) return ['  the endpoint is not in the log any more'];
  const { hardware, serving, scaling, memory } = inputs;
  return [
    `  ${inputs.name} on ${inputs.engine}: ${hardware.acceleratorCount} x ${hardware.acceleratorType ?? 'any accelerator'}, ${scaling.minReplicas} to ${scaling.maxReplicas} replicas`,
    `  ${serving.slotsPerReplica} slots of ${serving.contextTokens} tokens${memory === null ? '' : `; ${formatBytes(memory.weightBytes)} of weights, ${memory.kvBytesPerToken} B of cache for each token, ${formatBytes(memory.overheadBytes)} beside (${memory.basis})`}`,
  ];
}

function printTimeline(entries: readonly TimelineEntry[]): string {
  return entries.length === 0 ? '  nothing' : table(['AT', 'EVENT', 'BY', ''], entries.map((entry) => [entry.time, entry.type, entry.source, entry.says]));
}
