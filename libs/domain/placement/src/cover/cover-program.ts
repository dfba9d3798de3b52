/**
 * A linear program of coverage: buy columns at least cost so that each row gets at least its demand. The columns are
 * not listed; they are found by price. This is how GPUs are filled: a column is one GPU with its instances, a row is a
 * model with its rate.
 */
export interface CoverColumn<Content> {
  readonly cost: number;
  /** What one unit of the column gives to each row. */
  readonly gives: readonly number[];
  readonly content: Content;
}

export interface CoverProgram<Content> {
  /** Wanted by each row, in the row's own unit. */
  readonly demand: readonly number[];
  /** For each row one column that gives something to that row and to no other. */
  readonly first: readonly CoverColumn<Content>[];
  /** The column with the greatest worth for its cost at these prices per unit of each row; prices are not negative. */
  readonly best: (prices: readonly number[]) => CoverColumn<Content>;
}

export interface CoverSolution<Content> {
  readonly cost: number;
  /** No solution, whole or fractional, costs less: proven by the prices (Farley's bound). */
  readonly lowerBound: number;
  readonly amounts: readonly { readonly column: CoverColumn<Content>; readonly amount: number }[];
  readonly prices: readonly number[];
}

/** More exchanges than this end the search with what is there; the bound stays valid. */
const EXCHANGES_MAX = 5_000;

/** Worth that exceeds the cost by less than this share is no gain. */
const GAIN_MIN = 1e-9;

/** Demands are raised by this share, differently for each row, so that no two bases tie and the method cannot circle. */
const PERTURBATION = 1e-10;

/** Revised simplex with column generation on a dense inverse; meant for up to a few hundred rows. */
export function solveCover<Content>(program: CoverProgram<Content>): CoverSolution<Content> {
  const rows = program.demand.length;
  const demand = program.demand.map((value, row) => value * (1 + PERTURBATION * (row + 1)));
  const basis = program.first.map((column): BasisColumn<Content> => ({ column, cost: column.cost, gives: column.gives }));
  const inverse = basis.map(({ gives }, row) => Float64Array.from({ length: rows }, (_, at) => (at === row ? 1 / (gives[row] as number) : 0)));
  let prices: number[] = [];
  let lowerBound = 0;
  for (let exchange = 0; exchange < EXCHANGES_MAX; exchange += 1) {
    prices = pricesOf(basis, inverse);
    const entering = mostUseful(program, prices, (bound) => (lowerBound = Math.max(lowerBound, bound)));
    if (entering === undefined) break;
    if (!exchangeColumn(basis, inverse, demand, entering)) break;
  }
  const amounts = basis.flatMap(({ column }, row) => {
    const amount = dot(inverse[row] as Float64Array, demand);
    return column === undefined || amount <= 0 ? [] : [{ column, amount }];
  });
  return { cost: amounts.reduce((sum, { column, amount }) => sum + column.cost * amount, 0), lowerBound, amounts, prices: prices.map((price) => Math.max(0, price)) };
}

/** A column in the basis; without content where it stands for supply beyond demand. */
interface BasisColumn<Content> {
  readonly column: CoverColumn<Content> | undefined;
  readonly cost: number;
  readonly gives: readonly number[];
}

function pricesOf<Content>(basis: readonly BasisColumn<Content>[], inverse: readonly Float64Array[]): number[] {
  const prices = new Array<number>(basis.length).fill(0);
  for (const [row, { cost }] of basis.entries()) {
    if (cost === 0) continue;
    const line = inverse[row] as Float64Array;
    for (let at = 0; at < prices.length; at += 1) prices[at] = (prices[at] as number) + cost * (line[at] as number);
  }
  return prices;
}

/** The column that lowers the cost; undefined at the optimum. Each look also proves a lower bound. */
function mostUseful<Content>(program: CoverProgram<Content>, prices: readonly number[], prove: (bound: number) => void): BasisColumn<Content> | undefined {
  const rows = prices.length;
  const lowest = prices.reduce((least, price, row) => (price < (prices[least] as number) ? row : least), 0);
  if ((prices[lowest] ?? 0) < -GAIN_MIN) return { column: undefined, cost: 0, gives: Array.from({ length: rows }, (_, row) => (row === lowest ? -1 : 0)) };
  const positive = prices.map((price) => Math.max(0, price));
  const column = program.best(positive);
  const ratio = dot(positive, column.gives) / column.cost;
  if (ratio > 0) prove(dot(positive, program.demand) / Math.max(1, ratio));
  return ratio > 1 + GAIN_MIN ? { column, cost: column.cost, gives: column.gives } : undefined;
}

function exchangeColumn<Content>(basis: BasisColumn<Content>[], inverse: Float64Array[], demand: readonly number[], entering: BasisColumn<Content>): boolean {
  const direction = inverse.map((line) => dot(line, entering.gives));
  let leaving = -1;
  let least = Number.POSITIVE_INFINITY;
  for (const [row, change] of direction.entries()) {
    if (change <= 1e-12) continue;
    const ratio = Math.max(0, dot(inverse[row] as Float64Array, demand)) / change;
    if (ratio < least) {
      least = ratio;
      leaving = row;
    }
  }
  if (leaving < 0) return false;
  const pivot = inverse[leaving] as Float64Array;
  const scale = direction[leaving] as number;
  for (let at = 0; at < pivot.length; at += 1) pivot[at] = (pivot[at] as number) / scale;
  for (const [row, line] of inverse.entries()) {
    const factor = direction[row] as number;
    if (row === leaving || factor === 0) continue;
    for (let at = 0; at < line.length; at += 1) line[at] = (line[at] as number) - factor * (pivot[at] as number);
  }
  basis[leaving] = entering;
  return true;
}

function dot(one: ArrayLike<number>, other: ArrayLike<number>): number {
  let sum = 0;
  for (let at = 0; at < one.length; at += 1) sum += (one[at] as number) * (other[at] as number);
  return sum;
}
