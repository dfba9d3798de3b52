import { readdirSync, readFileSync } from 'node:fs';

/** One numbered step of the schema. Its statement may run again without harm, so several processes may start at once. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly statement: string;
}

const FILE_PATTERN = /^(\d{3})_([a-z0-9_]+)\.sql$/;

/** The steps in order, one file each in `schema/`, one statement per file. */
export function readMigrations(folder: URL = new URL('./schema/', import.meta.url)): readonly Migration[] {
  const migrations = readdirSync(folder).sort().map((file, index) => {
    const match = FILE_PATTERN.exec(file);
    const number = Number(match?.[1]);
    if (match === null || number !== index + 1) throw new Error(`schema/${file}: files are named NNN_name.sql and numbered from 001 without a gap`);
    return { number, name: match[2] ?? '', statement: readFileSync(new URL(file, folder), 'utf8') };
  });
  return migrations;
}

/** Remembers which steps were run, for people who look; the steps themselves are idempotent. */
export const MIGRATIONS_TABLE = `CREATE TABLE IF NOT EXISTS penstock_migrations_v1
(
    number     UInt32,
    name       String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY number`;
