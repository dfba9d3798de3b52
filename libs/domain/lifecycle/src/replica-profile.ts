import type { EventOf, ReplicaProfileMeasuredV1, replicaProfileMeasuredV1 } from '@penstock/contract-events';
import { accept, type Decider } from '@penstock/kernel';
import { mergeCurves, saysNews, type CurvePoint } from './curve-meter.js';

export type MeasureProfile =
  /** What the start showed. */
  | { readonly kind: 'measure'; readonly measured: ReplicaProfileMeasuredV1 }
  /** What the replica showed under load; `kvTokens` is null where the engine does not say. */
  | { readonly kind: 'add-curve'; readonly points: readonly CurvePoint[]; readonly kvTokens: number | null };

export type ReplicaProfileEvent = EventOf<typeof replicaProfileMeasuredV1>;

/** What one replica measured. Said again only when its curve says something new, so that every replica says little. */
export const replicaProfileDecider: Decider<ReplicaProfileMeasuredV1 | null, MeasureProfile, ReplicaProfileEvent> = {
  initialState: null,
  decide(command, known) {
    if (command.kind === 'measure') return known !== null && !saysNews(known.curve, command.measured.curve) ? accept() : accept({ type: 'replica-profile.measured.v1', data: command.measured });
    // A curve belongs to what the start said of model and device.
    if (known === null || !saysNews(known.curve, command.points)) return accept();
    return accept({ type: 'replica-profile.measured.v1', data: { ...known, kvTokens: known.kvTokens ?? command.kvTokens, curve: [...mergeCurves(known.curve, command.points)] } });
  },
  evolve: (known, event) => (event.type === 'replica-profile.measured.v1' ? event.data : known),
};

/** Profiles are kept for each of these: a model version at one precision on one kind of device. */
export function profileKey({ modelVersionId, precision, device }: Pick<ReplicaProfileMeasuredV1, 'modelVersionId' | 'precision' | 'device'>): string {
  return [modelVersionId, precision ?? '', device.acceleratorType, device.slice ?? '', device.tensorParallel, device.nodes].join('/');
}

/** A point, and the replica that it was measured on. */
export type KnownPoint = CurvePoint & { readonly replicaId: string };

/** The newest that replicas of one profile measured. Points of its curve may be of several of them. */
export type KnownProfile = Omit<ReplicaProfileMeasuredV1, 'curve'> & { readonly curve: readonly KnownPoint[] };

/** A replica that has only just started knows no curve, and must not take away what others measured. */
export function improveKnown(known: KnownProfile | undefined, { curve, ...measured }: ReplicaProfileMeasuredV1): KnownProfile {
  const points = curve.map((point) => ({ ...point, replicaId: measured.replicaId }));
  return { ...measured, weightBytes: measured.weightBytes ?? known?.weightBytes ?? null, kvTokens: measured.kvTokens ?? known?.kvTokens ?? null, curve: mergeCurves(known?.curve ?? [], points) };
}
