/** Where a value lies between two neighbours of a rising axis: index of the lower one and the share of the way to the upper. */
function locate(axis: readonly number[], value: number): { readonly low: number; readonly share: number } {
  let low = 0;
  while (low < axis.length - 2 && (axis[low + 1] ?? Infinity) <= value) low += 1;
  const from = axis[low] ?? 0;
  const to = axis[low + 1] ?? from;
  return { low, share: to === from ? 0 : (value - from) / (to - from) };
}

/** A function of one number, given at some points and straight between them and past them. */
export interface Curve {
  /** Rising. */
  readonly at: readonly number[];
  readonly value: readonly number[];
}

export function onCurve(curve: Curve, x: number): number {
  const { low, share } = locate(curve.at, x);
  const from = curve.value[low] ?? 0;
  return from + share * ((curve.value[low + 1] ?? from) - from);
}

/** Values at the crossings of rising axes, the last axis running fastest. */
export interface Grid {
  readonly axes: readonly (readonly number[])[];
  readonly values: readonly number[];
}

/** Multilinear between the crossings, straight past them. `point` has one number for each axis. */
export function onGrid(grid: Grid, point: readonly number[]): number {
  const places = grid.axes.map((axis, index) => locate(axis, point[index] ?? 0));
  const corner = (axis: number, offset: number): number => {
    const place = places[axis];
    const length = grid.axes[axis]?.length ?? 0;
    if (place === undefined) return grid.values[offset] ?? 0;
    const low = corner(axis + 1, offset * length + place.low);
    return place.share === 0 ? low : low + place.share * (corner(axis + 1, offset * length + Math.min(place.low + 1, length - 1)) - low);
  };
  return corner(0, 0);
}
