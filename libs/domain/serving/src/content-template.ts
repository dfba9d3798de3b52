/** A text without quotes, backslashes and control characters stands in JSON as it is. */
const PLAIN = /^[^"\\\u0000-\u001f]+$/;
const NUMBER_RUN = /\d+/;
const DIGIT_ZERO = 0x30;
const DIGIT_NINE = 0x39;

/**
 * How the events of a stream look that carry a piece of text and nothing new beside it, and how ours look for the same text. An
 * event that equals the learned one but for its text and for runs of digits after it becomes ours by putting the text in.
 */
export class ContentTemplate {
  private constructor(
    private readonly head: string,
    /** What stands between the numbers after the text. */
    private readonly tail: readonly string[],
    private readonly frameHead: string,
    private readonly frameTail: string,
  ) {}

  /**
   * `data` is the event, `content` the text that was read from it, `frame` what became of it. Undefined where the place of the
   * text is not plain to see.
   */
  static learn(data: string, content: string, frame: string): ContentTemplate | undefined {
    if (!PLAIN.test(content)) return undefined;
    const [from, to] = [placeOf(data, content), placeOf(frame, content)];
    if (from === undefined || to === undefined) return undefined;
    const tail = data.slice(from + content.length);
    // Digits of an escape are no number, and a choice that changes is more than a number.
    if (tail.includes('\\') || tail.includes('"index"')) return undefined;
    return new ContentTemplate(data.slice(0, from), tail.split(NUMBER_RUN), frame.slice(0, to), frame.slice(to + content.length));
  }

  frameOf(data: string): string | undefined {
    if (!data.startsWith(this.head)) return undefined;
    const start = this.head.length;
    const end = data.indexOf('"', start);
    const text = data.slice(start, end);
    if (end <= start || !PLAIN.test(text) || !this.endsAlike(data, end)) return undefined;
    return this.frameHead + text + this.frameTail;
  }

  private endsAlike(data: string, start: number): boolean {
    const { tail } = this;
    let at = start;
    for (let index = 0; index < tail.length; index += 1) {
      const part = tail[index] ?? '';
      if (index > 0) {
        const from = at;
        while (isDigit(data.charCodeAt(at))) at += 1;
        // A number with a leading zero is no JSON.
        if (at === from || (at > from + 1 && data.charCodeAt(from) === DIGIT_ZERO && !data.startsWith('.', from - 1))) return false;
      }
      if (!data.startsWith(part, at)) return false;
      at += part.length;
    }
    return at === data.length;
  }
}

const KEY = '"content":"';

/** Where the text begins, when it is the value of the only `content` of the event. */
function placeOf(text: string, content: string): number | undefined {
  const at = text.indexOf(`${KEY}${content}"`);
  if (at < 0 || text.indexOf('"content"') !== at || text.indexOf('"content"', at + 1) >= 0) return undefined;
  return at + KEY.length;
}

function isDigit(code: number): boolean {
  return code >= DIGIT_ZERO && code <= DIGIT_NINE;
}
