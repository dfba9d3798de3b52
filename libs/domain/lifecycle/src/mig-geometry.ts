import type { EventOf, MigChangeEndedV1, MigInstanceFact, MigStepFact, migChangeEndedV1, migChangePlannedV1, migInstanceCreatedV1, migInstanceDestroyedV1, MigChangePlannedV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';

/** A change that is under way on one GPU. */
export type MigChange = Pick<MigChangePlannedV1, 'changeId' | 'steps' | 'forReplicaId' | 'reason'>;

/** The MIG instances of one GPU as the log knows them, and the change under way. */
export interface MigGeometryState {
  readonly nodeId: string;
  readonly acceleratorId: string;
  /** By start. */
  readonly instances: readonly MigInstanceFact[];
  readonly change: MigChange | null;
  /** How the last change ended; null while none has. */
  readonly lastEnd: Pick<MigChangeEndedV1, 'changeId' | 'outcome' | 'reason'> | null;
}

type OnAccelerator<Body> = Body & { readonly nodeId: string; readonly acceleratorId: string };

export type MigCommand =
  /** Refused while another change is under way: changes of one GPU follow one another. */
  | OnAccelerator<{ readonly kind: 'plan-change' } & MigChange>
  | OnAccelerator<{ readonly kind: 'note-created'; readonly changeId: string | null; readonly instance: MigInstanceFact }>
  | OnAccelerator<{ readonly kind: 'note-destroyed'; readonly changeId: string | null; readonly profile: string; readonly start: number }>
  | OnAccelerator<{ readonly kind: 'end-change'; readonly changeId: string; readonly outcome: MigChangeEndedV1['outcome']; readonly reason: string }>;

export type MigEvent = EventOf<typeof migChangePlannedV1> | EventOf<typeof migInstanceCreatedV1> | EventOf<typeof migInstanceDestroyedV1> | EventOf<typeof migChangeEndedV1>;

const REASON_LENGTH_MAX = 1_000;

/**
 * The MIG geometry of one GPU. Each step of a change is an event once it was taken, so that a crash between any two leaves a
 * state from which the change goes on. What was said before changes nothing; so a step may be told again.
 */
export const migGeometryDecider: Decider<MigGeometryState | null, MigCommand, MigEvent> = {
  initialState: null,
  decide(command, state) {
    const { nodeId, acceleratorId } = command;
    const known = state?.instances ?? [];
    switch (command.kind) {
      case 'plan-change': {
        const { changeId, steps, forReplicaId, reason } = command;
        if (state?.change?.changeId === changeId || state?.lastEnd?.changeId === changeId) return accept();
        if (state !== null && state.change !== null) return refuse({ code: 'conflict', message: `Change ${state.change.changeId} of ${acceleratorId} is under way; plan again once it ended.`, param: 'acceleratorId' });
        return accept({ type: 'mig.change-planned.v1', data: { changeId, nodeId, acceleratorId, steps: [...steps], forReplicaId, reason: reason.slice(0, REASON_LENGTH_MAX) } });
      }
      case 'note-created': {
        const { instance, changeId } = command;
        const same = known.find((one) => isAt(one, instance));
        if (same !== undefined && same.uuid === instance.uuid) return accept();
        return accept({ type: 'mig.instance-created.v1', data: { nodeId, acceleratorId, changeId, ...instance } });
      }
      case 'note-destroyed': {
        const { changeId, profile, start } = command;
        if (!known.some((one) => isAt(one, command))) return accept();
        return accept({ type: 'mig.instance-destroyed.v1', data: { nodeId, acceleratorId, changeId, profile, start } });
      }
      case 'end-change': {
        if (state?.change?.changeId !== command.changeId) return accept();
        const { changeId, outcome, reason } = command;
        return accept({ type: 'mig.change-ended.v1', data: { changeId, nodeId, acceleratorId, outcome, reason: reason.slice(0, REASON_LENGTH_MAX) } });
      }
    }
  },
  evolve: evolveMigGeometry,
};

/** The one rule of how a geometry changes, for the decider and for the projection. Total. */
export function evolveMigGeometry(state: MigGeometryState | null, event: MigEvent): MigGeometryState {
  const { nodeId, acceleratorId } = event.data;
  const before: MigGeometryState = state ?? { nodeId, acceleratorId, instances: [], change: null, lastEnd: null };
  switch (event.type) {
    case 'mig.change-planned.v1': {
      const { changeId, steps, forReplicaId, reason } = event.data;
      return { ...before, nodeId, change: { changeId, steps, forReplicaId, reason } };
    }
    case 'mig.instance-created.v1': {
      const { profile, start, uuid } = event.data;
      const others = before.instances.filter((one) => !isAt(one, event.data));
      return { ...before, nodeId, instances: [...others, { profile, start, uuid }].sort((one, other) => one.start - other.start) };
    }
    case 'mig.instance-destroyed.v1':
      return { ...before, instances: before.instances.filter((one) => !isAt(one, event.data)) };
    case 'mig.change-ended.v1': {
      const { changeId, outcome, reason } = event.data;
      return before.change?.changeId === changeId ? { ...before, change: null, lastEnd: { changeId, outcome, reason } } : before;
    }
  }
}

/** The steps of a change that are still to be taken, in order. */
export function stepsLeft(change: MigChange, instances: readonly MigInstanceFact[]): readonly MigStepFact[] {
  return change.steps.filter((step) => instances.some((one) => isAt(one, step)) !== (step.kind === 'create'));
}

function isAt(one: { readonly profile: string; readonly start: number }, other: { readonly profile: string; readonly start: number }): boolean {
  return one.profile === other.profile && one.start === other.start;
}
