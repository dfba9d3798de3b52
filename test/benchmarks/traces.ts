import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { repositoryRoot } from '../contracts/files.js';

/** Rows of one trace by column name. Traces are other people's data: they are read where they lie and never copied. */
export function readTrace(name: string): readonly Readonly<Record<string, string>>[] {
  const folder = resolve(process.env['PENSTOCK_TRACES'] ?? join(repositoryRoot(import.meta.dirname), '..', 'shared', 'data', 'traces'));
  const path = join(folder, name);
  if (!existsSync(path)) throw new Error(`The trace ${name} is not in ${folder}: set PENSTOCK_TRACES to the folder that has it.`);
  const raw = readFileSync(path);
  const [header = '', ...lines] = (name.endsWith('.gz') ? gunzipSync(raw) : raw).toString('utf8').trimEnd().split(/\r?\n/);
  const columns = header.split(',');
  return lines.map((line) => {
    const cells = line.split(',');
    return Object.fromEntries(columns.map((column, index) => [column, cells[index] ?? '']));
  });
}

/** A column as a number; a trace with a hole says where. */
export function numberIn(row: Readonly<Record<string, string>>, column: string): number {
  const value = Number(row[column]);
  if (row[column] === undefined || row[column] === '' || Number.isNaN(value)) throw new Error(`The trace has no number in column ${column}: ${JSON.stringify(row)}`);
  return value;
}
