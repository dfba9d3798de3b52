import type { Installation } from '../../platform/installation.js';
import type { Tenant } from '../../platform/drill-world.js';
import type { ScriptedEngine } from '../../platform/scripted-engine.js';

/** What the attacks share, and where they report. */
export interface Attack {
  readonly installation: Installation;
  readonly engine: ScriptedEngine;
  readonly attacker: Tenant;
  readonly victim: Tenant;
  readonly seed: number;
  readonly say: (text: string) => void;
  /** Counts one attempt; `breach` says what got through, undefined that it was fended off. */
  attempt(family: string, what: string, breach: string | undefined): void;
}

export const MODEL = 'scripted';

/** Counts attempts and keeps what got through. */
export class Tally {
  readonly attempts: Record<string, number> = {};
  readonly breaches: { readonly family: string; readonly what: string; readonly breach: string }[] = [];

  constructor(private readonly say: (text: string) => void) {}

  readonly attempt = (family: string, what: string, breach: string | undefined): void => {
    this.attempts[family] = (this.attempts[family] ?? 0) + 1;
    if (breach === undefined) return;
    this.breaches.push({ family, what, breach });
    this.say(`BREACH ${family}: ${what}: ${breach}`);
  };

  get total(): number {
    return Object.values(this.attempts).reduce((sum, count) => sum + count, 0);
  }
}
