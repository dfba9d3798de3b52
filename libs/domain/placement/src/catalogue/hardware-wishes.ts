import { MIG_GEOMETRIES } from '../mig/mig-geometries.js';
import { GPU_TYPES } from './gpu-types.js';

/** What is wrong with a wish for hardware, and what would do. */
export interface WishProblem {
  readonly field: 'acceleratorType' | 'migProfile';
  readonly message: string;
}

/**
 * Checks a wish before anything is planned: the type has to be known, or be in the fleet, and has to have the MIG profile.
 * `fleetTypes` are the accelerator types that nodes report now. Undefined when nothing is wrong.
 */
export function wishProblem(acceleratorType: string | null, migProfile: string | null, fleetTypes: readonly string[]): WishProblem | undefined {
  if (acceleratorType !== null && !fleetTypes.includes(acceleratorType) && !isKnownType(acceleratorType)) {
    const known = [...new Set(['cpu', ...GPU_TYPES.map((gpu) => shortName(gpu.type))])].join(', ');
    return { field: 'acceleratorType', message: `${acceleratorType} is no accelerator of this fleet (${[...fleetTypes].sort().join(', ') || 'it is empty'}) and none that is known (${known})` };
  }
  if (migProfile === null) return undefined;
  const geometries = MIG_GEOMETRIES.filter((geometry) => acceleratorType === null || geometry.gpuType === acceleratorType || shortName(geometry.gpuType) === acceleratorType);
  if (geometries.some((geometry) => geometry.profiles.some((profile) => profile.name === migProfile))) return undefined;
  const names = [...new Set(geometries.flatMap((geometry) => geometry.profiles.map((profile) => profile.name)))].join(', ');
  const which = acceleratorType ?? 'No GPU';
  return { field: 'migProfile', message: names === '' ? `${which} cannot be split by MIG` : `${which} has no MIG profile ${migProfile}; there are ${names}` };
}

/** `h100` of `H100-80GB-SXM`: as nodes report it. */
function shortName(type: string): string {
  return (type.split('-')[0] ?? type).toLowerCase();
}

function isKnownType(type: string): boolean {
  const [gpu, profile] = type.split('-mig-');
  if (profile !== undefined) return wishProblem(gpu ?? '', profile, []) === undefined;
  return type === 'cpu' || GPU_TYPES.some((one) => one.type === type || shortName(one.type) === type);
}
