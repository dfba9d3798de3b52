import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isReading, scanStatement } from './statement.js';

describe('scanStatement', () => {
  test.each([
    ['SELECT 1', 'SELECT', false],
    ['  -- a comment; with a semicolon\n/* and ; another */ select 1 ;  ', 'SELECT', false],
    ['SELECT 1; SELECT 2', 'SELECT', true],
    ["SELECT ';' AS a, `x;y`, \"z;\" # tail ; here", 'SELECT', false],
    ["SELECT 'it\\'s; fine'", 'SELECT', false],
    ["SELECT 'it''s; fine'", 'SELECT', false],
    ["SELECT 1; 'x'", 'SELECT', true],
    ['SELECT 1; -- nothing more', 'SELECT', false],
    ['', '', false],
  ])('%j', (sql, verb, hasMore) => {
    expect(scanStatement(sql)).toMatchObject({ verb, hasMore });
  });

  test('does not look into the data of an insert', () => {
    const sql = 'INSERT INTO t (a, b) FORMAT JSONEachRow\n{"a":"x; DROP TABLE t"}';
    const statement = scanStatement(sql);
    expect(statement).toMatchObject({ verb: 'INSERT', hasMore: false, insertFormat: { name: 'JSONEachRow' } });
    expect(sql.slice(statement.insertFormat?.dataOffset)).toBe('{"a":"x; DROP TABLE t"}');
    expect(scanStatement("INSERT INTO t VALUES ('a;b'), ('c')")).toMatchObject({ hasMore: false, insertFormat: { name: 'Values' } });
  });

  test('knows what only reads', () => {
    expect(['SELECT 1', 'WITH x AS (SELECT 1) SELECT * FROM x', 'SHOW TABLES'].map((sql) => isReading(scanStatement(sql)))).toEqual([true, true, true]);
    expect(['DROP TABLE t', 'INSERT INTO t SELECT 1', 'SET a = 1'].map((sql) => isReading(scanStatement(sql)))).toEqual([false, false, false]);
  });

  test('a quoted text never begins a second statement', () => {
    fc.assert(fc.property(fc.string(), (text) => {
      const quoted = `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
      expect(scanStatement(`SELECT ${quoted}`).hasMore).toBe(false);
      expect(scanStatement(`SELECT ${quoted}; SELECT 2`).hasMore).toBe(true);
    }));
  });
});
