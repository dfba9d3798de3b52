const ANSI = /\u001b\[[0-9;]*m/g;
const NVLINK = /^NV\d+$/;

/**
 * Which GPUs reach each other by NVLink, out of the matrix that `nvidia-smi topo -m` prints: the name of its island for each GPU,
 * by index. A GPU without NVLink has none.
 */
export function parseIslands(output: string): ReadonlyMap<number, string> {
  const rows = output.replace(ANSI, '').split('\n').map((line) => line.split('\t').map((cell) => cell.trim()));
  const header = rows.find((cells) => cells.some((cell) => cell === 'GPU0') && !/^GPU\d+$/.test(cells[0] ?? ''));
  if (header === undefined) return new Map();
  const columns = header.flatMap((cell, column) => (/^GPU\d+$/.test(cell) ? [{ gpu: Number(cell.slice(3)), column }] : []));
  const islandOf = new Map<number, number>();
  for (const cells of rows) {
    if (!/^GPU\d+$/.test(cells[0] ?? '')) continue;
    const gpu = Number((cells[0] ?? '').slice(3));
    for (const { gpu: other, column } of columns) {
      if (other === gpu || !NVLINK.test(cells[column] ?? '')) continue;
      join(islandOf, gpu, other);
    }
  }
  return new Map([...islandOf].map(([gpu, island]) => [gpu, `nvlink-${island}`]));
}

/** Both GPUs, and all that either reaches, are one island, named after its lowest GPU. */
function join(islandOf: Map<number, number>, one: number, other: number): void {
  const islands = [islandOf.get(one) ?? one, islandOf.get(other) ?? other];
  const name = Math.min(...islands);
  islandOf.set(one, name);
  islandOf.set(other, name);
  for (const [gpu, island] of islandOf) if (islands.includes(island)) islandOf.set(gpu, name);
}
