import { demandKey, type ArrivalDemand } from './arrival-demand.js';
import type { ArrivalFleet, ArrivalPlace } from './arrival-fleet.js';
import type { ArrivalPolicy } from './arrival-policy.js';

/** Kinds of demand whose scores are remembered; the whole memory is dropped when there are more. */
const REMEMBERED_DEMANDS_MAX = 1_024;

interface RememberedScores {
  readonly scores: Float64Array;
  readonly chosen: (readonly number[])[];
  /** How much of the fleet's list of changes these scores know. */
  changesSeen: number;
}

const DOES_NOT_FIT = Number.NEGATIVE_INFINITY;

/**
 * Places demands one by one. A node is assessed again only after it changed, so that a decision costs little more than
 * one look at each node's last score.
 */
export class ArrivalPlanner {
  private readonly remembered = new Map<string, RememberedScores>();

  constructor(private readonly fleet: ArrivalFleet, private readonly policy: ArrivalPolicy) {}

  /** Takes the best place, or returns undefined when no node fits. `isAllowed` leaves out nodes for this one demand. */
  place(demand: ArrivalDemand, isAllowed?: (node: number) => boolean): ArrivalPlace | undefined {
    const { scores, chosen } = this.scoresFor(demand);
    let best = -1;
    let bestScore = DOES_NOT_FIT;
    for (let node = 0; node < scores.length; node += 1) {
      const score = scores[node] as number;
      if (score > bestScore && (isAllowed === undefined || isAllowed(node))) {
        best = node;
        bestScore = score;
      }
    }
    if (best < 0) return undefined;
    const place = { node: best, accelerators: chosen[best] ?? [] };
    this.fleet.take(place, demand);
    return place;
  }

  release(place: ArrivalPlace, demand: ArrivalDemand): void {
    this.fleet.release(place, demand);
  }

  private scoresFor(demand: ArrivalDemand): RememberedScores {
    const key = demandKey(demand);
    const { changes, nodes } = this.fleet;
    const known = this.remembered.get(key);
    if (known === undefined) {
      if (this.remembered.size >= REMEMBERED_DEMANDS_MAX) this.remembered.clear();
      const fresh: RememberedScores = { scores: new Float64Array(nodes.length), chosen: [], changesSeen: changes.length };
      for (let node = 0; node < nodes.length; node += 1) this.assess(fresh, node, demand);
      this.remembered.set(key, fresh);
      return fresh;
    }
    if (changes.length - known.changesSeen > 0) for (const node of new Set(changes.slice(known.changesSeen))) this.assess(known, node, demand);
    known.changesSeen = changes.length;
    return known;
  }

  private assess(into: RememberedScores, node: number, demand: ArrivalDemand): void {
    if (!this.fleet.fits(node, demand)) {
      into.scores[node] = DOES_NOT_FIT;
      return;
    }
    const chosen: number[] = [];
    into.scores[node] = this.policy.assess(this.fleet, node, demand, chosen);
    into.chosen[node] = chosen;
  }
}
