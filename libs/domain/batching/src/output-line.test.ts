import { describe, expect, test } from '@jest/globals';
import { isSuccess, lineRequestId, outputRow, type LineOutcome } from './output-line.js';

describe('an output row', () => {
  test('carries the answer as it came, on one line', () => {
    const outcome: LineOutcome = { kind: 'answered', statusCode: 200, requestId: 'req_1', bodyText: '{\n  "seed": 12345678901234567890,\r\n  "text": "a\\nb"\n}\n' };
    const row = outputRow('batch_1', 7, 'r"1', outcome);
    expect(row.endsWith('\n')).toBe(true);
    expect(row.trimEnd()).not.toContain('\n');
    expect(row).toContain('12345678901234567890');
    expect(JSON.parse(row)).toMatchObject({ id: 'batch_req_batch_1_7', custom_id: 'r"1', response: { status_code: 200, request_id: 'req_1', body: { text: 'a\nb' } }, error: null });
    expect(isSuccess(outcome)).toBe(true);
  });

  test('of a failure over HTTP keeps the status and the envelope', () => {
    const outcome: LineOutcome = { kind: 'answered', statusCode: 400, requestId: 'req_1', bodyText: '{"error":{"message":"no"}}' };
    expect(JSON.parse(outputRow('b', 1, 'a', outcome))).toMatchObject({ response: { status_code: 400, body: { error: { message: 'no' } } }, error: null });
    expect(isSuccess(outcome)).toBe(false);
  });

  test('of an answer that is not JSON carries it as text', () => {
    expect(JSON.parse(outputRow('b', 1, 'a', { kind: 'answered', statusCode: 502, requestId: 'r', bodyText: '<html>\n' }))).toMatchObject({ response: { body: '<html>\n' } });
  });

  test('of a line that never ran has no response', () => {
    const outcome: LineOutcome = { kind: 'unanswered', code: 'batch_expired', message: 'late' };
    expect(JSON.parse(outputRow('b', 1, 'a', outcome))).toEqual({ id: 'batch_req_b_1', custom_id: 'a', response: null, error: { code: 'batch_expired', message: 'late' } });
    expect(isSuccess(outcome)).toBe(false);
  });

  test('the request id of a line is the same for every worker and another one for every attempt', () => {
    expect(lineRequestId('batch_1', 3, 0)).toBe('req_batch_1_3');
    expect(lineRequestId('batch_1', 3, 2)).toBe('req_batch_1_3_2');
  });
});
