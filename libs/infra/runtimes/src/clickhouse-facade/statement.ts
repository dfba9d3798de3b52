/** What the façade must know of a query before the engine sees it. */
export interface Statement {
  /** First word in upper case, such as `SELECT`. */
  readonly verb: string;
  /** True when more than a semicolon follows the first statement. */
  readonly hasMore: boolean;
  /** For `INSERT … FORMAT x`: the format, and where its data begins. */
  readonly insertFormat: { readonly name: string; readonly dataOffset: number } | undefined;
}

const READING_VERBS: ReadonlySet<string> = new Set(['SELECT', 'WITH', 'SHOW', 'DESCRIBE', 'DESC', 'EXPLAIN', 'EXISTS', '']);
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y;
const FORMAT_CLAUSE = /FORMAT\s+([A-Za-z0-9_]+)\s*/iy;

/** True for statements that change nothing. */
export function isReading(statement: Statement): boolean {
  return READING_VERBS.has(statement.verb);
}

/** Walks over a query, past strings, quoted names and comments. Data that follows an INSERT is not looked at. */
export function scanStatement(sql: string): Statement {
  let verb = '';
  for (let at = 0; at < sql.length; ) {
    const skipped = skipOpaque(sql, at);
    if (skipped > at) {
      at = skipped;
      continue;
    }
    if (sql[at] === ';') return { verb, hasMore: hasContent(sql, at + 1), insertFormat: undefined };
    WORD.lastIndex = at;
    const word = WORD.exec(sql)?.[0];
    if (word === undefined) {
      at += 1;
      continue;
    }
    if (verb === '') verb = word.toUpperCase();
    if (verb === 'INSERT') {
      const format = insertFormatAt(sql, at);
      if (format !== undefined) return { verb, hasMore: false, insertFormat: format };
      if (word.toUpperCase() === 'VALUES') return { verb, hasMore: false, insertFormat: { name: 'Values', dataOffset: at + word.length } };
    }
    at += word.length;
  }
  return { verb, hasMore: false, insertFormat: undefined };
}

function insertFormatAt(sql: string, at: number): Statement['insertFormat'] {
  FORMAT_CLAUSE.lastIndex = at;
  const match = FORMAT_CLAUSE.exec(sql);
  return match?.[1] === undefined ? undefined : { name: match[1], dataOffset: FORMAT_CLAUSE.lastIndex };
}

function hasContent(sql: string, from: number): boolean {
  for (let at = from; at < sql.length; ) {
    const skipped = skipOpaque(sql, at);
    if (skipped > at && !isQuote(sql[at])) at = skipped;
    else if (sql[at] === ';' || /\s/.test(sql[at] ?? '')) at += 1;
    else return true;
  }
  return false;
}

function isQuote(character: string | undefined): boolean {
  return character === "'" || character === '"' || character === '`';
}

/** End of the string, quoted name or comment that begins at `at`; `at` itself when none does. */
function skipOpaque(sql: string, at: number): number {
  const character = sql[at];
  if (isQuote(character)) return skipQuoted(sql, at);
  if (character === '#' || sql.startsWith('--', at)) {
    const end = sql.indexOf('\n', at);
    return end === -1 ? sql.length : end + 1;
  }
  if (sql.startsWith('/*', at)) {
    const end = sql.indexOf('*/', at + 2);
    return end === -1 ? sql.length : end + 2;
  }
  return at;
}

function skipQuoted(sql: string, from: number): number {
  const quote = sql[from];
  for (let at = from + 1; at < sql.length; at += 1) {
    if (sql[at] === '\\') at += 1;
    else if (sql[at] === quote) return at + 1;
  }
  return sql.length;
}
