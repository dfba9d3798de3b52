// The measured logs and layer profiles. They belong to others and are read where they lie; nothing of them is kept here.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Curve, Grid, HostCosts, LayerProfile } from '@penstock/domain-engine-model';
import type { TraceRequest } from '@penstock/testing-simulator';

export type Row = Readonly<Record<string, string>>;

/** `PENSTOCK_TRACES`, or the folder `shared/data/traces` beside the repository. */
export function tracesDir(): string {
  return process.env['PENSTOCK_TRACES'] ?? resolve('../shared/data/traces');
}

export function readCsv(path: string): Row[] {
  if (!existsSync(path)) throw new Error(`There is no ${path}. This bench needs the trace files: set PENSTOCK_TRACES to their folder.`);
  const bytes = readFileSync(path);
  const [head = '', ...lines] = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8').trim().split('\n');
  const names = head.trim().split(',');
  return lines.map((line) => {
    const cells = line.trim().split(',');
    return Object.fromEntries(names.map((name, index) => [name, cells[index] ?? '']));
  });
}

export const numberOf = (row: Row, name: string): number => Number(row[name]);

/** What a real engine took for one request, in milliseconds. */
export interface RealRequest extends TraceRequest {
  readonly ttftMs: number;
  readonly tpotMs: number;
  readonly e2eMs: number;
}

export function readLog(name: string): RealRequest[] {
  return readCsv(join(tracesDir(), `vllm-real-${name}.csv.gz`)).map((row, index) => {
    const at = (column: string): number => numberOf(row, column) * 1e3;
    const outputTokens = numberOf(row, 'output_tokens');
    return {
      id: String(index), arrivalMs: at('arrival_s'), promptTokens: numberOf(row, 'input_tokens'), outputTokens,
      ttftMs: at('first_token_s') - at('arrival_s'), e2eMs: at('last_token_s') - at('arrival_s'),
      tpotMs: (at('last_token_s') - at('first_token_s')) / Math.max(1, outputTokens - 1),
    };
  });
}

const ONCE_LAYERS = ['embedding', 'final_layernorm'];
/** Both norms of a layer run the same kernel; it was measured once. */
const TIMES_IN_LAYER: Readonly<Record<string, number>> = { layernorm: 2, qk_norm: 2 };

/** Builds a layer profile out of the tables `vllm-profile-NAME-*`. */
export function readProfile(name: string, layers: number, host: HostCosts): LayerProfile {
  const table = (part: string): Row[] => readCsv(join(tracesDir(), `vllm-profile-${name}-${part}.csv.gz`));
  const dense = table('dense');
  const attention = new AttentionTable(table('attention'));
  return {
    layers, host,
    layerUs: sumOfLayers(dense.filter((row) => !ONCE_LAYERS.includes(row['layer'] ?? '')), 'tokens', TIMES_IN_LAYER),
    onceUs: sumOfLayers(dense.filter((row) => ONCE_LAYERS.includes(row['layer'] ?? '')), 'tokens', {}),
    perSequenceUs: sumOfLayers(table('per_sequence'), 'sequences', {}),
    decodeUs: attention.decode(), prefillUs: attention.prefill(), mixedDecodeUs: attention.mixedDecode(),
  };
}

function sumOfLayers(rows: readonly Row[], axis: string, times: Readonly<Record<string, number>>): Curve {
  const sums = new Map<number, number>();
  for (const row of rows) sums.set(numberOf(row, axis), (sums.get(numberOf(row, axis)) ?? 0) + numberOf(row, 'time_us') * (times[row['layer'] ?? ''] ?? 1));
  const at = [...sums.keys()].sort((left, right) => left - right);
  return { at, value: at.map((key) => sums.get(key) ?? 0) };
}

/** Rows by prompt chunk, its cached tokens, decoding sequences, and their context. */
class AttentionTable {
  private readonly times = new Map<string, number>();
  private readonly points: readonly (readonly [number, number, number, number])[];

  constructor(rows: readonly Row[]) {
    this.points = rows.map((row) => [numberOf(row, 'prefill_chunk'), numberOf(row, 'kv_prefill'), numberOf(row, 'n_decode'), numberOf(row, 'kv_decode')] as const);
    rows.forEach((row, index) => this.times.set(this.points[index]?.join() ?? '', numberOf(row, 'time_us')));
  }

  decode(): Grid {
    return this.grid(this.axis(2), this.axis(3), (sequences, context) => this.times.get([0, 0, sequences, context].join()));
  }

  prefill(): Grid {
    return this.grid(this.axis(0), [0, ...this.axis(1)], (tokens, cached) => this.times.get([tokens, cached, 0, 0].join()));
  }

  /** What decoding sequences add to prompt chunks of every measured size, as the median over the sizes. */
  mixedDecode(): Grid {
    return this.grid(this.axis(2), this.axis(3), (sequences, context) => {
      const added = this.points.filter(([tokens, , decodes, kv]) => tokens > 0 && decodes === sequences && kv === context).flatMap(([tokens, cached, decodes, kv]) => {
        const whole = this.times.get([tokens, cached, decodes, kv].join());
        const alone = this.times.get([tokens, cached, 0, 0].join());
        return whole === undefined || alone === undefined ? [] : [whole - alone];
      }).sort((left, right) => left - right);
      return added[Math.floor(added.length / 2)];
    });
  }

  /** Powers of two: two of the tables have further values between them, which were not measured against all others. */
  private axis(position: 0 | 1 | 2 | 3): number[] {
    return [...new Set(this.points.map((point) => point[position]))].filter((value) => value > 0 && Number.isInteger(Math.log2(value))).sort((left, right) => left - right);
  }

  /** A crossing that was not measured takes the value that grows from its left neighbour as the row before does. */
  private grid(first: readonly number[], second: readonly number[], measured: (first: number, second: number) => number | undefined): Grid {
    const values: number[] = [];
    for (const [row, left] of first.entries()) {
      for (const [column, right] of second.entries()) {
        const here = row * second.length + column;
        const grown = ((values[here - 1] ?? 0) * right) / Math.max(1, second[column - 1] ?? right);
        values.push(measured(left, right) ?? (column > 0 ? grown : (values[here - second.length] ?? 0)));
      }
    }
    return { axes: [first, second], values };
  }
}
