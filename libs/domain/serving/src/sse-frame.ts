/** One event of a stream. JSON holds no raw line break, so no content can end a frame early. */
export function sseFrame(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** One named event, as the Responses API has them: the name is the `type` inside too. */
export function sseEvent(event: { readonly type: string; readonly [field: string]: unknown }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

export const SSE_DONE = 'data: [DONE]\n\n';

/** A comment keeps the connection busy. A blank line after it breaks some clients, so it has a single line break. */
export function sseComment(text: string): string {
  return `: ${text}\n`;
}
