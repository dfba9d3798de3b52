/** Why a line has no answer over HTTP. */
export type LineErrorCode = 'batch_cancelled' | 'batch_expired' | 'request_timeout' | 'request_failed';

/** What became of one line. */
export type LineOutcome =
  | { readonly kind: 'answered'; readonly statusCode: number; readonly requestId: string; readonly bodyText: string }
  | { readonly kind: 'unanswered'; readonly code: LineErrorCode; readonly message: string };

/** True for a line that goes to the output file; all others go to the error file. */
export function isSuccess(outcome: LineOutcome): boolean {
  return outcome.kind === 'answered' && outcome.statusCode >= 200 && outcome.statusCode < 300;
}

/**
 * The id that the request of one line has at every attempt of every worker, so that its usage counts once.
 * `attempt` is from 0: a request that failed and is sent again is another request.
 */
export function lineRequestId(batchId: string, lineNumber: number, attempt: number): string {
  const base = `req_${batchId}_${lineNumber}`;
  return attempt === 0 ? base : `${base}_${attempt}`;
}

/** One row of the output or error file, with its line break. */
export function outputRow(batchId: string, lineNumber: number, customId: string, outcome: LineOutcome): string {
  const id = JSON.stringify(`batch_req_${batchId}_${lineNumber}`);
  const custom = JSON.stringify(customId);
  if (outcome.kind === 'unanswered') {
    const error = JSON.stringify({ code: outcome.code, message: outcome.message });
    return `{"id":${id},"custom_id":${custom},"response":null,"error":${error}}\n`;
  }
  const response = `{"status_code":${outcome.statusCode},"request_id":${JSON.stringify(outcome.requestId)},"body":${oneLineJson(outcome.bodyText)}}`;
  return `{"id":${id},"custom_id":${custom},"response":${response},"error":null}\n`;
}

const LINE_BREAKS = /[\r\n]+/g;

/** JSON on one line: in valid JSON a raw line break stands between tokens only. What is not JSON becomes a JSON string. */
function oneLineJson(text: string): string {
  try {
    JSON.parse(text);
    return text.trim().replace(LINE_BREAKS, ' ');
  } catch {
    return JSON.stringify(text);
  }
}

export const CANCELLED_MESSAGE = 'The batch was cancelled before this request was run.';
export const EXPIRED_MESSAGE = 'The batch expired before this request was run.';
