import type { KeyMinter } from '@penstock/domain-access';
import type { ObjectStore } from '@penstock/domain-batching';
import type { KvEventSource } from '@penstock/domain-routing';
import type { UsageOutbox } from '@penstock/domain-usage';
import type { ServicePorts } from '@penstock/feature-shell';
import type { DeadLetterQueue, SharedRecords } from '@penstock/kernel';

/** What a gateway needs from outside. */
export interface GatewayPorts extends ServicePorts {
  readonly keys: KeyMinter;
  /** Drained by the gateway when it stops; closed by whoever made it, afterwards. */
  readonly usage: UsageOutbox;
  readonly objects: ObjectStore;
  readonly deadLetters: DeadLetterQueue;
  /** Answers that clients asked to be stored; records live a day. */
  readonly answers: SharedRecords;
  /** What engines say of their caches; left out, the gateway goes by what it sent alone. */
  readonly kvEvents?: KvEventSource | undefined;
}
