import type { Subscription } from './event-log.js';

/**
 * Live, lossy messages over core NATS: load telemetry and heartbeats. Nothing may depend on any single one arriving.
 * Subjects: `tele.node.<nodeId>`, `tele.replica.<replicaId>`, `tele.endpoint.<endpointId>`, `tele.pull.<replicaId>`, `tele.router.<instanceId>`,
 * `tele.prompts.<instanceId>`, `tele.adapters.<replicaId>`.
 */
export interface Signals {
  /** Sends and forgets; a message that cannot be sent is dropped. `data` is JSON. */
  publish(subject: string, data: unknown): void;
  /** `subject` may end in `.*` or `.>`. A body that is not JSON is dropped. */
  subscribe(subject: string, onMessage: (data: unknown, subject: string) => void): Promise<Subscription>;
}
