import { adapterReport } from '@penstock/contract-commands';
import type { Signals, Subscription } from '@penstock/kernel';
import type { AdapterBeliefs } from './adapter-beliefs.js';

/** Lets every process that chooses replicas hear what engines say of their adapters. What gets lost is said again a second later. */
export function hearAdapters(signals: Signals, beliefs: AdapterBeliefs): Promise<Subscription> {
  return signals.subscribe('tele.adapters.*', (data) => {
    const parsed = adapterReport.safeParse(data);
    if (parsed.success) beliefs.hear(parsed.data);
  });
}
