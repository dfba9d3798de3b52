/** What goes wrong on purpose. `after` counts produced tokens of the request. */
export type Fault =
  /** The process ends as if it had been killed. */
  | { readonly kind: 'die'; readonly after: number }
  /** No further byte comes; the connection stays open. */
  | { readonly kind: 'hang'; readonly after: number }
  /** A chunk that is not JSON, then the stream goes on. */
  | { readonly kind: 'garbage'; readonly after: number }
  /** vLLM's error event under status 200, then `[DONE]`. */
  | { readonly kind: 'error'; readonly after: number }
  /** The connection is cut. */
  | { readonly kind: 'cut'; readonly after: number }
  /** Usage that claims ten times the tokens. */
  | { readonly kind: 'wrong-usage' }
  /** Status 503 as from a full engine. */
  | { readonly kind: 'refuse' };

const FAULT_PATTERN = /^(die|hang|garbage|error|cut)-after=(\d{1,7})$/;

/** Reads `die-after=5`, `hang`, `wrong-usage`…; undefined for anything else. `none` is no fault too. */
export function parseFault(text: string | undefined): Fault | undefined {
  if (text === undefined) return undefined;
  if (text === 'wrong-usage' || text === 'refuse') return { kind: text };
  if (text === 'hang' || text === 'garbage' || text === 'error' || text === 'cut' || text === 'die') return { kind: text, after: 0 };
  const match = FAULT_PATTERN.exec(text);
  return match === null ? undefined : { kind: match[1] as 'die' | 'hang' | 'garbage' | 'error' | 'cut', after: Number(match[2]) };
}
