import { describe, expect, test } from '@jest/globals';
import { defineCommand } from '@penstock/contract-commands';
import { EventLogFullError, EventLogUnavailableError, ServiceUnavailableError, silentLogger } from '@penstock/kernel';
import { z } from 'zod';
import { answerCommand, ok, refused } from './answer-command.js';

const contract = defineCommand({ subject: 'cmd.test.do', summary: 'A test.', request: z.object({ count: z.int() }), reply: z.object({ doubled: z.int() }) });
const answer = (payload: unknown, handle: (request: { count: number }) => Promise<ReturnType<typeof ok<{ doubled: number }>> | ReturnType<typeof refused>>) => answerCommand(contract, payload, silentLogger, handle);

describe('answering a command', () => {
  test('a value comes back as ok', async () => {
    expect(await answer({ count: 2 }, ({ count }) => Promise.resolve(ok({ doubled: count * 2 })))).toEqual({ kind: 'ok', value: { doubled: 4 } });
  });

  test('a body that does not match never reaches the handler and names the field', async () => {
    const reply = await answer({ count: 'two' }, () => Promise.reject(new Error('must not run')));
    expect(reply).toMatchObject({ kind: 'refused', refusal: { code: 'invalid_value', param: 'count' } });
  });

  test.each([
    [new EventLogUnavailableError('timeout'), 'service_unavailable'],
    [new EventLogFullError('EV_FLEET'), 'event_log_full'],
    [new ServiceUnavailableError('cmd.x', 'no-responders'), 'service_unavailable'],
    [new Error('secret detail'), 'internal_error'],
  ])('%s becomes a refusal', async (error, code) => {
    const reply = await answer({ count: 1 }, () => Promise.reject(error));
    expect(reply).toMatchObject({ kind: 'refused', refusal: { code } });
    expect(JSON.stringify(reply)).not.toContain('secret detail');
  });

  test('a refusal keeps its parameter and its waiting time', async () => {
    const refusal = { code: 'queue_full', message: 'Full.', param: 'model', retryAfterMs: 500 };
    expect(await answer({ count: 1 }, () => Promise.resolve(refused(refusal)))).toEqual({ kind: 'refused', refusal });
  });
});
