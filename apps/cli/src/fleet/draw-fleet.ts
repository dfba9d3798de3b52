import { formatBytes } from '../terminal/format.js';
import type { DescribedDevice, DescribedFleet, DescribedMig, DescribedNode, Held } from './describe-fleet.js';

/** The largest device of the fleet is this wide; all others are to the same scale. */
const CELLS_MAX = 24;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const FREE = '·';
/** A MIG instance that nobody uses. */
const IDLE = '-';
/** For endpoints beyond the letters. */
const OTHER = '#';
const INDENT = '  ';
const WIDTH_MIN = 40;

/** Nodes with their devices as bars of one scale; each letter is an endpoint, a dot is free memory. */
export function drawFleet(fleet: DescribedFleet, width: number): readonly string[] {
  const { totals } = fleet;
  if (fleet.nodes.length === 0) return ['No node has joined yet. Start an agent, or `npm run up`.'];
  const letters = chooseLetters(fleet);
  const largest = Math.max(1, ...fleet.nodes.flatMap((node) => node.devices.map((device) => device.memoryBytes)));
  const scale = CELLS_MAX / largest;
  return [
    `${totals.nodesUp} of ${fleet.nodes.length} nodes up, ${totals.devicesHeld} of ${totals.devices} devices held, ${formatBytes(totals.usedBytes)} of ${formatBytes(totals.memoryBytes)} set aside`,
    ...fleet.nodes.flatMap((node) => ['', ...drawNode(node, letters, scale, Math.max(WIDTH_MIN, width))]),
    '',
    ...[...letters].map(([endpointId, { letter, name }]) => `${letter} ${name} (${endpointId})`),
    `one cell is ${formatBytes(largest / CELLS_MAX)}; ${FREE} is free`,
  ];
}

type Letters = ReadonlyMap<string, { readonly letter: string; readonly name: string }>;

function chooseLetters(fleet: DescribedFleet): Letters {
  const letters = new Map<string, { letter: string; name: string }>();
  for (const { endpointId, endpointName } of fleet.nodes.flatMap((node) => [...node.devices.flatMap((device) => device.held), ...node.withoutDevice])) {
    if (!letters.has(endpointId)) letters.set(endpointId, { letter: LETTERS[letters.size] ?? OTHER, name: endpointName });
  }
  return letters;
}

function drawNode(node: DescribedNode, letters: Letters, scale: number, width: number): readonly string[] {
  const status = node.status === 'up' ? (node.closedBecause ?? 'up') : `LOST: ${node.statusReason ?? 'no reason is known'}`;
  const lines = [`${node.hostname}  ${status}  ${node.cpuCores} cores, ${formatBytes(node.memoryBytes)}  ${node.engines.join(' ')}  (${node.nodeId})`];
  if (node.devices.length === 0) lines.push(`${INDENT}offers no devices now`);
  for (const [kind, devices] of Map.groupBy(node.devices, (device) => `${device.type} of ${formatBytes(device.memoryBytes)}`)) {
    lines.push(`${INDENT}${devices.length} x ${kind}`, ...wrap(devices.map((device) => drawDevice(device, letters, scale)), width));
  }
  for (const held of node.withoutDevice) lines.push(`${INDENT}${letters.get(held.endpointId)?.letter ?? OTHER} ${held.replicaId} runs on a device that is not offered any more`);
  return lines;
}

/** `[AAAB······]`: each holder has at least one cell, and the whole is never longer than the device. */
export function drawDevice(device: DescribedDevice, letters: Letters, scale: number): string {
  const cells = Math.max(1, Math.round(device.memoryBytes * scale));
  if (device.mig !== null) return drawSlices(device.mig, letters, cells);
  const letterOf = (held: Held): string => letters.get(held.endpointId)?.letter ?? OTHER;
  const filled = device.held.map((held) => letterOf(held).repeat(Math.max(1, Math.round(held.bytes * scale)))).join('').slice(0, cells);
  return `[${filled}${FREE.repeat(cells - filled.length)}]`;
}

/** `[AAAAAAAAAAAA|------|···|BBB]`: instances to scale, with a dash where one is idle, a dot where none is. */
function drawSlices({ memorySlices, instances }: DescribedMig, letters: Letters, cells: number): string {
  const width = Math.max(1, Math.round(cells / memorySlices));
  const parts: string[] = [];
  let slice = 0;
  for (const { start, memorySlices: length, held } of instances) {
    if (start > slice) parts.push(FREE.repeat((start - slice) * width));
    parts.push((held === null ? IDLE : (letters.get(held.endpointId)?.letter ?? OTHER)).repeat(length * width));
    slice = Math.max(slice, start + length);
  }
  if (slice < memorySlices) parts.push(FREE.repeat((memorySlices - slice) * width));
  return `[${parts.join('|')}]`;
}

function wrap(bars: readonly string[], width: number): readonly string[] {
  const lines: string[] = [];
  let line = INDENT + INDENT;
  for (const bar of bars) {
    if (line.trim() !== '' && line.length + bar.length + 1 > width) {
      lines.push(line.trimEnd());
      line = INDENT + INDENT;
    }
    line += `${bar} `;
  }
  return [...lines, line.trimEnd()];
}
