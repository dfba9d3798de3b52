const HTTP_BAD_REQUEST = 400;
const HTTP_INTERNAL_ERROR = 500;

/** HTTP statuses by ClickHouse's error code, as its own HTTP handler maps them. */
const STATUS_BY_CODE: ReadonlyMap<number, number> = new Map([
  // Parsing and types.
  ...[6, 26, 27, 36, 38, 41, 42, 43, 53, 62, 70, 72, 108, 117, 130, 456].map((code) => [code, HTTP_BAD_REQUEST] as const),
  // Unknown things.
  ...[8, 16, 46, 47, 50, 60, 73, 81, 111, 115].map((code) => [code, 404] as const),
  [159, 408], [164, 403], [202, 503], [241, 500], [396, 400], [497, 403], [516, 403], [619, 413],
]);

/** An error in ClickHouse's own form: the stock client reads the code and the name from the text. */
export class ClickhouseError extends Error {
  override readonly name = 'ClickhouseError';
  readonly code: number;
  readonly status: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
    this.status = STATUS_BY_CODE.get(code) ?? HTTP_INTERNAL_ERROR;
  }

  static of(code: number, name: string, reason: string): ClickhouseError {
    return new ClickhouseError(code, `Code: ${code}. DB::Exception: ${reason}. (${name})`);
  }

  /** Takes over an error of the engine. */
  static from(error: unknown): ClickhouseError {
    if (error instanceof ClickhouseError) return error;
    const message = error instanceof Error ? error.message : String(error);
    const code = /Code: (\d+)/.exec(message)?.[1];
    if (code === undefined) return ClickhouseError.of(1_002, 'UNKNOWN_EXCEPTION', message);
    return new ClickhouseError(Number(code), message);
  }
}
