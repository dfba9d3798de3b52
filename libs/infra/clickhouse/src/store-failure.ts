import { UsageStoreUnavailableError } from '@penstock/domain-usage';
import { ClickHouseError } from '@clickhouse/client';

/** Codes of ClickHouse that say that the rows themselves are wrong: sending them again cannot help. */
const DATA_CODES: ReadonlySet<string> = new Set([
  '6', // CANNOT_PARSE_TEXT
  '25', // CANNOT_PARSE_ESCAPE_SEQUENCE
  '26', // CANNOT_PARSE_QUOTED_STRING
  '27', // CANNOT_PARSE_INPUT_ASSERTION_FAILED
  '38', // CANNOT_PARSE_DATE
  '41', // CANNOT_PARSE_DATETIME
  '53', // TYPE_MISMATCH
  '69', // ARGUMENT_OUT_OF_BOUND
  '72', // CANNOT_PARSE_NUMBER
  '117', // INCORRECT_DATA
  '131', // TOO_LARGE_STRING_SIZE
  '349', // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
]);

/** Codes that say that the schema is not there: somebody dropped it, or the data folder is new. */
const SCHEMA_CODES: ReadonlySet<string> = new Set(['16', '60', '81']);

export function isSchemaMissing(error: unknown): boolean {
  return error instanceof ClickHouseError && SCHEMA_CODES.has(error.code);
}

/** Turns what the client throws into the error of the port. Faults of the data pass as they are. */
export function asStoreFailure(error: unknown): Error {
  if (error instanceof UsageStoreUnavailableError) return error;
  if (error instanceof ClickHouseError) {
    if (DATA_CODES.has(error.code)) return error;
    return new UsageStoreUnavailableError(`ClickHouse refused with code ${error.code} ${error.type ?? ''}`.trimEnd(), { cause: error });
  }
  const code = (error as { code?: unknown }).code;
  const reason = typeof code === 'string' ? `no connection to ClickHouse (${code})` : 'no answer from ClickHouse';
  return new UsageStoreUnavailableError(reason, { cause: error });
}
