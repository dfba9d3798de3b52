import { hashOf } from './tokenizer.js';

const WORDS = (
  'the water runs through a pipe and turns the wheel that makes power for the town while the valve waits to be shut at any moment '
  + 'so engineers watch pressure flow heat load noise and time because every second counts when demand rises or falls'
).split(' ');

/** Without `ignore_eos` an answer ends by itself after this many tokens at most. */
const NATURAL_LENGTH_MIN = 12;
const NATURAL_LENGTH_SPREAD = 60;

export type SimToken = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'end' };

/** The tokens of one answer: a pure function of prompt, seed and choice, so a test knows beforehand what it will read. */
export class TokenSource {
  private state: number;
  private readonly naturalLength: number;
  private position = 0;

  constructor(prompt: string, seed: number, choice: number, private readonly ignoreEnd: boolean) {
    this.state = (hashOf(prompt) ^ Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(choice + 1, 0x85ebca6b)) >>> 0 || 1;
    this.naturalLength = NATURAL_LENGTH_MIN + (this.draw() % NATURAL_LENGTH_SPREAD);
  }

  next(): SimToken {
    if (!this.ignoreEnd && this.position === this.naturalLength) return { kind: 'end' };
    const word = WORDS[this.draw() % WORDS.length] ?? 'water';
    this.position += 1;
    return { kind: 'text', text: this.position === 1 ? word : ` ${word}` };
  }

  /** Xorshift, 32 bits. */
  private draw(): number {
    this.state ^= (this.state << 13) >>> 0;
    this.state = (this.state ^ (this.state >>> 17)) >>> 0;
    this.state = (this.state ^ (this.state << 5)) >>> 0;
    return this.state;
  }
}
