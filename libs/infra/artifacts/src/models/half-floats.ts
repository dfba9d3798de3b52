const EXPONENT_BIAS_DIFFERENCE = 112;
const MANTISSA_SHIFT = 13;
const HALF_INFINITY = 0x7c00;

/** 32-bit floats as 16-bit ones, rounded to the nearest and to even in between; small ones become subnormal, large ones infinite (IEEE 754). */
export function toHalfFloats(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(bits.length);
  for (let index = 0; index < bits.length; index += 1) halves[index] = halfOf(bits[index] ?? 0);
  return halves;
}

function halfOf(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const exponent = (bits >>> 23) & 0xff;
  const mantissa = bits & 0x7fffff;
  if (exponent === 0xff) return sign | HALF_INFINITY | (mantissa === 0 ? 0 : 0x200);
  const half = exponent - EXPONENT_BIAS_DIFFERENCE;
  if (half >= 0x1f) return sign | HALF_INFINITY;
  if (half > 0) return sign | roundToEven((half << 23) | mantissa, MANTISSA_SHIFT);
  // Below the smallest normal number the leading one is written out and shifted right.
  const shift = MANTISSA_SHIFT + 1 - half;
  return shift > 24 ? sign : sign | roundToEven(mantissa | 0x800000, shift);
}

/** A carry out of the mantissa makes the exponent one larger, which is right. */
function roundToEven(value: number, shift: number): number {
  const kept = value >>> shift;
  const rest = value & ((1 << shift) - 1);
  const middle = 1 << (shift - 1);
  return rest > middle || (rest === middle && (kept & 1) === 1) ? kept + 1 : kept;
}
