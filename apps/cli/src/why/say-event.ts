import { formatBytes } from '../terminal/format.js';
import type { StoryEvent } from './event-reader.js';

/** What one event says, in a line for people. Types that need no words of their own show their body. */
export function sayEvent(event: StoryEvent): string {
  switch (event.type) {
    case 'endpoint.deployed.v1': {
      const { name, engine, hardware, scaling } = event.data;
      return `deployed as ${name} on ${engine}: ${hardware.acceleratorCount} x ${hardware.acceleratorType ?? 'any accelerator'}, ${scaling.minReplicas} to ${scaling.maxReplicas} replicas`;
    }
    case 'endpoint.retired.v1':
      return `retired: ${event.data.reason}`;
    case 'model-version.registered.v1':
      return `model version read: ${formatBytes(event.data.memory.weightBytes)} of weights, ${event.data.memory.kvBytesPerToken} B of cache for each token (${event.data.memory.basis})`;
    case 'wanted-replicas.changed.v1':
      return `wanted ${event.data.from} -> ${event.data.to} by the rule ${event.data.rule}: ${event.data.reason}${saySignals(event.data.signals)}`;
    case 'placement.refused.v2':
      return `refused (${event.data.code}), ${event.data.placedReplicas} of ${event.data.wantedReplicas} placed: ${event.data.reason}${event.data.hint === null ? '' : `; ${event.data.hint}`}`;
    case 'replica.placed.v2':
      return `placed on ${event.data.members.map(({ nodeId, acceleratorIds }) => `${nodeId}, ${acceleratorIds.join(' ') || 'no accelerator'}`).join('; ')}: ${event.data.reason.summary}`;
    case 'mig.change-planned.v1':
      return `MIG change planned: ${event.data.steps.map(({ kind, profile, start }) => `${kind} ${profile} at ${start}`).join(', ')}: ${event.data.reason}`;
    case 'mig.change-ended.v1':
      return `MIG change ${event.data.outcome}: ${event.data.reason}`;
    case 'reservation.made.v1':
      return `reserved with priority ${event.data.level.priority}: ${event.data.reason}`;
    case 'reservation.refused.v1':
      return `reservation refused (${event.data.code}): ${event.data.reason}`;
    case 'reservation.released.v1':
      return `reservation released: ${event.data.reason}`;
    case 'replica.advanced.v1':
      return event.data.phase;
    case 'replica.ready.v1':
      return `ready at ${event.data.url}, ${event.data.slots} slots`;
    case 'replica.drain-started.v1':
      return `drains: ${event.data.reason}`;
    case 'replica.stopped.v1':
      return `stopped: ${event.data.reason}`;
    case 'replica.failed.v1':
      return `failed while ${event.data.phase} (${event.data.code}): ${event.data.reason}`;
    case 'replica-circuit.opened.v1':
      return `taken out of traffic: ${event.data.reason}`;
    case 'replica-circuit.closed.v1':
      return 'takes traffic again';
    default:
      return JSON.stringify(event.data);
  }
}

function saySignals(signals: Readonly<Record<string, number>>): string {
  const said = Object.entries(signals).map(([name, value]) => `${name} ${value}`);
  return said.length === 0 ? '' : ` (${said.join(', ')})`;
}
