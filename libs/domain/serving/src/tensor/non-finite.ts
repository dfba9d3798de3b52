const STRING_OR_NON_FINITE = /"[^"\\]*(?:\\.[^"\\]*)*"|-?Infinity|NaN/gs;

/**
 * Puts the bare words `NaN`, `Infinity` and `-Infinity`, which some engines write for such values and which no JSON parser
 * takes, into quotes. These strings are what the JSON form of protocol buffers has for them, and numerical libraries read them as numbers.
 */
export function quoteNonFinite(text: string): string {
  if (!text.includes('NaN') && !text.includes('Infinity')) return text;
  return text.replaceAll(STRING_OR_NON_FINITE, (match) => (match.startsWith('"') ? match : `"${match}"`));
}
