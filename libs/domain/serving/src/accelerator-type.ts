/** Marketing names to the types of the catalogue; longer names first, since `L4` is in `L40S`. */
const KNOWN_TYPES = ['gb200', 'b200', 'h200', 'h100', 'gh200', 'a100', 'l40s', 'l40', 'a10g', 'a10', 'l4', 't4', 'v100'] as const;
const TYPE_LENGTH_MAX = 50;

/** The accelerator type that a product name such as `NVIDIA H100 80GB HBM3` stands for; an unknown product keeps its words. */
export function acceleratorTypeOf(productName: string): string {
  const words = productName.toLowerCase().split(/[^a-z0-9]+/);
  const known = KNOWN_TYPES.find((type) => words.includes(type));
  return known ?? words.filter((word) => word !== '' && word !== 'nvidia').join('-').slice(0, TYPE_LENGTH_MAX);
}
