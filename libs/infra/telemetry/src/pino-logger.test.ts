import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createPinoLogger } from './pino-logger.js';

const LINES_WAIT_MS_MAX = 5_000;

async function linesOf(file: string, count: number): Promise<Record<string, unknown>[]> {
  const deadline = Date.now() + LINES_WAIT_MS_MAX;
  for (;;) {
    let text = '';
    try {
      text = readFileSync(file, 'utf8');
    } catch {
      // The file appears with the first flush.
    }
    const lines = text.split('\n').filter((line) => line.length > 0);
    if (lines.length >= count || Date.now() > deadline) return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    await pause(10);
  }
}

test('secrets and prompts are redacted, other fields and the service name stay', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-log-'));
  const file = join(folder, 'service.log');
  const logger = createPinoLogger({ level: 'info', file }).child({ service: 'gateway' });
  logger.debug({}, 'below the level');
  logger.info({ apiKey: 'sk-canary', request: { messages: ['canary prompt'] }, route: '/v1/models' }, 'request');
  const lines = await linesOf(file, 1);
  expect(lines).toHaveLength(1);
  expect(JSON.stringify(lines)).not.toContain('canary');
  expect(lines[0]).toMatchObject({ service: 'gateway', route: '/v1/models', msg: 'request' });
  rmSync(folder, { recursive: true });
});
