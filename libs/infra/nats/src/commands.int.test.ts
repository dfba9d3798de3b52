import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Controller, type INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Ctx, EventPattern, MessagePattern, NatsContext, Payload } from '@nestjs/microservices';
import { defineCommand, type CommandReply } from '@penstock/contract-commands';
import { CommandFailedError, type ServiceUnavailableError } from '@penstock/kernel';
import { eventually, startTestNats, type TestNats } from '@penstock/testing-kit';
import { z } from 'zod';
import { connectNats, type NatsLink } from './connect-nats.js';
import { NatsCommandClient } from './nats-command-client.js';
import { natsCommandTransport } from './nats-command-server.js';

const echo = defineCommand({ subject: 'cmd.test.echo', summary: 'Answers what it got.', request: z.object({ text: z.string() }), reply: z.object({ text: z.string(), correlationId: z.string() }) });
const slow = defineCommand({ subject: 'cmd.test.slow', summary: 'Answers when it is told.', request: z.object({}), reply: z.object({ done: z.boolean() }) });
const broken = defineCommand({ subject: 'cmd.test.broken', summary: 'Throws.', request: z.object({}), reply: z.object({}) });
const odd = defineCommand({ subject: 'cmd.test.odd', summary: 'Answers in a wrong shape.', request: z.object({}), reply: z.object({ count: z.int() }) });
const nobody = defineCommand({ subject: 'cmd.test.nobody', summary: 'Nobody serves it.', request: z.object({}), reply: z.object({}) });

const slowCalls: (() => void)[] = [];

@Controller()
class EchoController {
  @MessagePattern(echo.subject)
  answer(@Payload() payload: { text: string }, @Ctx() context: NatsContext): CommandReply<{ text: string; correlationId: string }> {
    if (payload.text === 'no') return { kind: 'refused', refusal: { code: 'no', message: 'said no' } };
    return { kind: 'ok', value: { text: payload.text, correlationId: (context.getHeaders() as { get(name: string): string }).get('x-correlation-id') } };
  }

  @MessagePattern(slow.subject)
  async wait(): Promise<CommandReply<{ done: boolean }>> {
    await new Promise<void>((resolve) => slowCalls.push(resolve));
    return { kind: 'ok', value: { done: true } };
  }

  @MessagePattern(broken.subject)
  fail(): never {
    throw new Error('a secret detail');
  }

  @MessagePattern(odd.subject)
  odd(): object {
    return { kind: 'ok', value: { count: 'many' } };
  }

  @EventPattern('api-key.revoked.v1')
  event(@Payload() _event: object): void {
    throw new Error('events do not come this way');
  }
}

class EchoModule {}

describe('commands over the NATS transporter of Nest', () => {
  let server: TestNats;
  let link: NatsLink;
  let client: NatsCommandClient;
  let app: INestMicroservice;

  beforeAll(async () => {
    server = await startTestNats({ user: 'penstock', password: 'p@ss/word'.replaceAll(/[@/]/g, '_') });
    link = await connectNats({ url: server.url, name: 'penstock/test' });
    client = new NatsCommandClient(link);
    app = await NestFactory.createMicroservice({ module: EchoModule, controllers: [EchoController] }, { ...natsCommandTransport({ url: server.url, name: 'penstock/echo', queue: 'echo' }), logger: false });
    await app.listen();
  });
  afterAll(async () => {
    await app.close();
    await link.close();
    await server.close();
  });

  test('a reply, a refusal and the correlation come through', async () => {
    expect(await client.send(echo, { text: 'hi' }, { correlationId: 'cor_1' })).toEqual({ kind: 'ok', value: { text: 'hi', correlationId: 'cor_1' } });
    expect(await client.send(echo, { text: 'no' })).toEqual({ kind: 'refused', refusal: { code: 'no', message: 'said no' } });
  });

  test('a line break in an outside id does not become a header', async () => {
    expect(await client.send(echo, { text: 'hi' }, { correlationId: 'a\r\nb: c' })).toMatchObject({ value: { correlationId: 'a%0D%0Ab%3A%20c' } });
  });

  test('failures of the service are told apart from its absence', async () => {
    await expect(client.send(broken, {})).rejects.toThrow(new CommandFailedError(broken.subject, 'Internal server error'));
    await expect(client.send(odd, {})).rejects.toThrow(/does not match the contract at value\.count/);
    await expect(client.send(nobody, {})).rejects.toMatchObject({ name: 'ServiceUnavailableError', reason: 'no-responders' });
    await expect(client.send(slow, {}, { timeoutMs: 50 })).rejects.toMatchObject({ name: 'ServiceUnavailableError', reason: 'timeout' });
  });

  test('a caller that goes away stops waiting', async () => {
    const abort = new AbortController();
    const before = slowCalls.length;
    const waiting = client.send(slow, {}, { signal: abort.signal });
    await eventually(() => slowCalls.length, (length) => length > before);
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'ServiceUnavailableError', reason: 'aborted' });
    for (const finish of slowCalls) finish();
  });

  test('event patterns are not subscribed to', async () => {
    await expect(link.connection.request('api-key.revoked.v1', '{}')).rejects.toThrow(/no responders/);
  });

  test('closing answers the commands in flight', async () => {
    const before = slowCalls.length;
    const waiting = client.send(slow, {});
    await eventually(() => slowCalls.length, (length) => length > before);
    const closing = app.close();
    await expect(eventually(() => client.send(slow, {}, { timeoutMs: 200 }).then(() => undefined, (error: ServiceUnavailableError) => error.reason), (reason) => reason === 'no-responders')).resolves.toBe('no-responders');
    slowCalls.at(-1)?.();
    for (const finish of slowCalls) finish();
    expect(await waiting).toEqual({ kind: 'ok', value: { done: true } });
    await closing;
  });

  test('without a server it fails at once', async () => {
    await server.kill();
    await eventually(() => link.state(), (state) => state === 'disconnected');
    await expect(client.send(echo, { text: 'hi' })).rejects.toMatchObject({ name: 'ServiceUnavailableError', reason: 'disconnected' });
    await server.restart();
    await eventually(() => link.state(), (state) => state === 'connected');
  });
});
