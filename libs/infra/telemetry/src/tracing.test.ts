import { context, propagation, trace } from '@opentelemetry/api';
import { InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { expect, test } from '@jest/globals';
import { startTracing } from './tracing.js';

test('a span made under a remote parent keeps the trace id and is handed to the processors', async () => {
  const exporter = new InMemorySpanExporter();
  const tracing = startTracing({ serviceName: 'test', processors: [new SimpleSpanProcessor(exporter)] });
  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const remote = propagation.extract(context.active(), { traceparent: parent });
  trace.getTracer('test').startSpan('chat', {}, remote).end();
  const [span] = exporter.getFinishedSpans();
  expect(span?.spanContext().traceId).toBe('0af7651916cd43dd8448eb211c80319c');
  const carrier: Record<string, string> = {};
  propagation.inject(remote, carrier);
  expect(carrier['traceparent']).toBe(parent);
  await tracing.stop();
});
