import type { EventOf, ReplicaProfileMeasuredV1, replicaProfileMeasuredV1 } from '@penstock/contract-events';
import { accept, type Decider } from '@penstock/kernel';

export interface MeasureProfile {
  readonly kind: 'measure';
  readonly measured: ReplicaProfileMeasuredV1;
}

export type ReplicaProfileEvent = EventOf<typeof replicaProfileMeasuredV1>;

/** What one replica measured. Said again only with more points of its curve, so that every replica says little. */
export const replicaProfileDecider: Decider<ReplicaProfileMeasuredV1 | null, MeasureProfile, ReplicaProfileEvent> = {
  initialState: null,
  decide({ measured }, known) {
    if (known !== null && known.curve.length >= measured.curve.length) return accept();
    return accept({ type: 'replica-profile.measured.v1', data: measured });
  },
  evolve: (known, event) => (event.type === 'replica-profile.measured.v1' ? event.data : known),
};

/** Profiles are kept for each of these: a model version at one precision on one kind of device. */
export function profileKey({ modelVersionId, precision, device }: Pick<ReplicaProfileMeasuredV1, 'modelVersionId' | 'precision' | 'device'>): string {
  return [modelVersionId, precision ?? '', device.acceleratorType, device.slice ?? '', device.tensorParallel, device.nodes].join('/');
}
