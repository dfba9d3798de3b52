import type { FleetAssignment, FleetNode } from '@penstock/domain-placement';

/** What an A100 with 80 GB allows, written down again from NVIDIA's MIG user guide: begins and lengths on 8 memory slices. */
const INSTANCES: Readonly<Record<string, { readonly gpcs: number; readonly begins: readonly number[]; readonly length: number }>> = {
  '1g.10gb': { gpcs: 1, begins: [0, 1, 2, 3, 4, 5, 6], length: 1 },
  '1g.20gb': { gpcs: 1, begins: [0, 2, 4, 6], length: 2 },
  '2g.20gb': { gpcs: 2, begins: [0, 2, 4], length: 2 },
  '3g.40gb': { gpcs: 3, begins: [0, 4], length: 4 },
  '4g.40gb': { gpcs: 4, begins: [0], length: 4 },
  '7g.80gb': { gpcs: 7, begins: [0], length: 8 },
};
const COMPUTE_SLICES = 7;
const WHOLE_MILLI = 1_000;

interface Held {
  computeMilli: number;
  vramMib: number;
  compute: number;
  readonly slices: Set<number>;
}

export interface FleetCheck {
  readonly problems: readonly string[];
  readonly gpusInUse: number;
  readonly cost: number;
}

/** Adds up what every endpoint holds, from nothing but the nodes and the seats, and finds what is given away twice. */
export function checkFleet(nodes: readonly FleetNode[], lostDomain: string | null, assignments: Iterable<FleetAssignment>): FleetCheck {
  const nodeOf = nodes.flatMap((node) => Array.from({ length: node.gpus }, () => node));
  const indexInNode = nodes.flatMap((node) => Array.from({ length: node.gpus }, (_, index) => index));
  const held = new Map<number, Held>();
  const cpu = new Map<FleetNode, number>();
  const problems: string[] = [];
  for (const { demand, option, seats } of assignments) {
    if (seats.length !== option.parts.length) problems.push(`${demand.endpointId} has ${seats.length} of ${option.parts.length} replicas`);
    const domains = new Map<string, number>();
    for (const { part, seat } of seats) {
      if (seat.gpus.length !== part.accelerators || new Set(seat.gpus).size !== part.accelerators) problems.push(`${demand.endpointId}: a group of ${part.accelerators} has ${seat.gpus.length} GPUs`);
      const homes = new Set(seat.gpus.map((gpu) => nodeOf[gpu] as FleetNode));
      if (homes.size !== part.nodes) problems.push(`${demand.endpointId}: a group spans ${homes.size} nodes`);
      for (const home of homes) {
        if (home.failureDomain === lostDomain) problems.push(`${demand.endpointId} stands in the lost rack`);
        if (home.gpuType !== option.gpuType) problems.push(`${demand.endpointId}: wrong GPU type`);
        const inNode = seat.gpus.filter((gpu) => nodeOf[gpu] === home).map((gpu) => indexInNode[gpu] as number);
        if (inNode.length > 1 && !home.islands.some((island) => inNode.every((index) => island.includes(index)))) problems.push(`${demand.endpointId}: a group leaves its NVLink island`);
        cpu.set(home, (cpu.get(home) ?? 0) + part.cpuMilli / part.nodes);
      }
      for (const domain of new Set([...homes].map((home) => home.failureDomain))) domains.set(domain, (domains.get(domain) ?? 0) + 1);
      for (const gpu of seat.gpus) problems.push(...hold(held, gpu, part, seat.start).map((problem) => `${demand.endpointId}: ${problem}`));
    }
    if (seats.length > 1 && Math.max(...domains.values()) > Math.ceil(seats.length / 2)) problems.push(`${demand.endpointId}: too many replicas in one rack`);
  }
  for (const [gpu, { computeMilli, vramMib, slices }] of held) {
    if (computeMilli > WHOLE_MILLI || vramMib > (nodeOf[gpu]?.vramMib ?? 0)) problems.push(`GPU ${gpu} is overcommitted`);
    if (slices.size > 0 && computeMilli > 0) problems.push(`GPU ${gpu} is both partitioned and whole`);
  }
  for (const [node, used] of cpu) if (used > node.cpuMilli) problems.push(`${node.nodeId} has too little CPU`);
  const cost = [...held.keys()].reduce((sum, gpu) => sum + (nodeOf[gpu]?.pricePerGpu ?? 0), 0);
  return { problems, gpusInUse: held.size, cost };
}

function hold(held: Map<number, Held>, gpu: number, part: { readonly computeMilli: number; readonly vramMib: number; readonly migProfile: string | null }, start: number | null): readonly string[] {
  const known = held.get(gpu) ?? { computeMilli: 0, vramMib: 0, compute: 0, slices: new Set<number>() };
  held.set(gpu, known);
  if (part.migProfile === null) {
    known.computeMilli += part.computeMilli;
    known.vramMib += part.vramMib;
    return [];
  }
  const rule = INSTANCES[part.migProfile];
  if (rule === undefined || start === null || !rule.begins.includes(start)) return [`${part.migProfile} at ${start} is not legal`];
  const problems: string[] = [];
  known.compute += rule.gpcs;
  if (known.compute > COMPUTE_SLICES) problems.push(`GPU ${gpu} has ${known.compute} compute slices`);
  for (let slice = start; slice < start + rule.length; slice += 1) {
    if (known.slices.has(slice)) problems.push(`slice ${slice} of GPU ${gpu} is given away twice`);
    known.slices.add(slice);
  }
  return problems;
}
