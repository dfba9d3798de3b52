import { setTimeout as pause } from 'node:timers/promises';
import { MODEL, type Attack } from './attack.js';

/** A gateway that was just under attack sheds load for a moment; an attack that was shed has shown nothing. */
const SHED_RETRIES_MAX = 60;
const SHED_WAIT_MS = 250;

export interface Asked {
  readonly status: number;
  readonly text: string;
}

/** One chat request with the given body fields and headers, sent again while it is shed. */
export async function askChat(attack: Attack, key: string, content: unknown, body: Readonly<Record<string, unknown>> = {}, headers: Readonly<Record<string, string>> = {}): Promise<Asked> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await fetch(`${attack.installation.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content }], max_tokens: 64, ...body }),
    });
    const text = await answer.text();
    if (answer.status !== 429 || attempt >= SHED_RETRIES_MAX) return { status: answer.status, text };
    await pause(SHED_WAIT_MS);
  }
}
