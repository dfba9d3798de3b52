import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

const METRICS = ['num_requests_running', 'num_requests_waiting', 'prompt_tokens_total', 'generation_tokens_total'].map((name) => `vllm:${name} 0`).join('\n');

/** Stands for the engines of Pods whose containers do not exist: answers a one-token generation under any model name, and is always idle. */
export class FakeEngine {
  private constructor(private readonly server: Server, readonly url: string) {}

  static async start(): Promise<FakeEngine> {
    const server = createServer((incoming, answer) => {
      incoming.resume();
      if (incoming.url === '/metrics') {
        answer.setHeader('content-type', 'text/plain').end(`${METRICS}\n`);
        return;
      }
      answer.setHeader('content-type', 'application/json').end(JSON.stringify({
        id: 'chatcmpl-drill', object: 'chat.completion', created: 0, model: 'drill',
        choices: [{ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason: 'length' }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FakeEngine(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}
