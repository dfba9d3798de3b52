import type { MigStepFact } from '@penstock/contract-events';

/** Makes and destroys MIG instances where a driver may do that. */
export interface GeometryDriver {
  /**
   * Takes one step; nothing happens when it was taken before. Gives the UUID of an instance that was made, null otherwise.
   * Throws {@link GeometryStepRefused} when the GPU will never do it as things are, any other error when it may work later.
   */
  take(step: MigStepFact & { readonly nodeId: string; readonly acceleratorId: string }): Promise<{ readonly uuid: string | null }>;
}

/** The GPU refuses a step, such as to destroy an instance that an engine uses. */
export class GeometryStepRefused extends Error {
  override readonly name = 'GeometryStepRefused';
}
