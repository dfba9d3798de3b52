const BYTES_PER_FLOAT = 4;

/** Little-endian 32-bit floats out of base64, as OpenAI's API sends vectors; undefined when the text is not that. */
export function decodeFloats(text: string): Float32Array | undefined {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    return undefined;
  }
  if (binary.length % BYTES_PER_FLOAT !== 0) return undefined;
  const view = new DataView(new ArrayBuffer(binary.length));
  for (let index = 0; index < binary.length; index += 1) view.setUint8(index, binary.charCodeAt(index));
  return Float32Array.from({ length: binary.length / BYTES_PER_FLOAT }, (_, index) => view.getFloat32(index * BYTES_PER_FLOAT, true));
}
