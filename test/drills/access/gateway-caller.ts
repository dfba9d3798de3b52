export interface CalledAnswer {
  readonly status: number;
  readonly text: string;
  /** The limit on tokens that the answer names. */
  readonly limit: string | null;
}

/** Calls one gateway, and adds up the tokens that its answers say they took. */
export class GatewayCaller {
  private readonly tokens = new Map<string, number>();

  constructor(private readonly url: string, private readonly model: string) {}

  /** Whether the gateway lets the key in. */
  async knows(key: string): Promise<boolean> {
    const answer = await fetch(`${this.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    await answer.arrayBuffer();
    return answer.ok;
  }

  async chat(key: string, tokens: number, headers: Readonly<Record<string, string>> = {}): Promise<CalledAnswer> {
    const body = JSON.stringify({ model: this.model, max_tokens: tokens, messages: [{ role: 'user', content: 'Tell me about the sea.' }] });
    const answer = await fetch(`${this.url}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers }, body });
    const text = await answer.text();
    if (answer.ok) this.tokens.set(key, this.tokensOf(key) + (JSON.parse(text) as { usage: { total_tokens: number } }).usage.total_tokens);
    return { status: answer.status, text, limit: answer.headers.get('x-ratelimit-limit-tokens') };
  }

  tokensOf(key: string): number {
    return this.tokens.get(key) ?? 0;
  }
}
