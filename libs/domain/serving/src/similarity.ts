/** Cosine of the angle between two vectors of the same length: 1 for the same direction, 0 when either has no length. */
export function cosineSimilarity(left: Float32Array, right: Float32Array): number {
  let [product, leftSquare, rightSquare] = [0, 0, 0];
  for (let index = 0; index < left.length; index += 1) {
    const [a, b] = [left[index] ?? 0, right[index] ?? 0];
    product += a * b;
    leftSquare += a * a;
    rightSquare += b * b;
  }
  return leftSquare === 0 || rightSquare === 0 ? 0 : product / Math.sqrt(leftSquare * rightSquare);
}
