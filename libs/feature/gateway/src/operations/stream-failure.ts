import { toOpenAiError, type ApiFault } from '@penstock/contract-http';
import { sseFrame, SSE_DONE } from '@penstock/domain-serving';

/** An error event, as OpenAI's clients take it in the middle of a stream: no finish reason is made up. */
export function openAiFailureFrames(fault: ApiFault): string {
  return sseFrame(toOpenAiError(fault)) + SSE_DONE;
}
