import type { ChatCall, ChatClient, ChatOutcome } from '../../platform/chat-client.js';
import type { Installation } from '../../platform/installation.js';
import type { ScriptedEngine } from '../../platform/scripted-engine.js';

/** One thing that must hold, and whether it did. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly note: string;
}

/** What the scenarios share. */
export interface World {
  readonly installation: Installation;
  readonly engine: ScriptedEngine;
  readonly client: ChatClient;
  readonly key: string;
  /** A number from 0 up to 1, derived from the seed. */
  readonly random: () => number;
  readonly checks: Check[];
  readonly say: (text: string) => void;
}

/** The scripted engine behind one replica with many slots. */
export const MODEL = 'scripted';
/** The same engine twice, so that there is somewhere else to go. */
export const TWIN_MODEL = 'scripted-twins';
/** The same engine behind two slots and a queue of four. */
export const NARROW_MODEL = 'scripted-narrow';
/** Two real processes that can be killed and stopped. */
export const SIM_MODEL = 'sim-drill';

/** Far above what a loaded machine needs, far below what a client would call hanging. */
export const FIRST_TOKEN_TIMEOUT_MS = 6_000;
export const CHUNK_GAP_TIMEOUT_MS = 4_000;
export const CLIENT_STALL_TIMEOUT_MS = 5_000;

export function ask(world: World, call: Partial<ChatCall> & Pick<ChatCall, 'content'>): Promise<ChatOutcome> {
  return world.client.ask({ url: world.installation.url, key: world.key, model: MODEL, ...call });
}

export function check(world: World, name: string, ok: boolean, note = ''): void {
  world.checks.push({ name, ok, note });
  if (!ok) world.say(`FAILED ${name}: ${note}`);
}

/** The value below which `share` of the values lie; 0 when there are none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export function countBy(values: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

/** A fast generator with good spread for drills (mulberry32, public domain). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
