import { context, propagation, ROOT_CONTEXT, SpanKind, trace, TraceFlags, type Context } from '@opentelemetry/api';
import { InMemorySpanExporter, ParentBasedSampler, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { expect, test } from '@jest/globals';
import { EntrySampler, EntryTracerProvider } from './entry-tracer.js';
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

test('of requests from outside a share is sampled, drawn before anything is made; one that brings a trace follows it', async () => {
  const exporter = new InMemorySpanExporter();
  const provider = new EntryTracerProvider({ sampler: new ParentBasedSampler({ root: new EntrySampler(0.25) }), spanProcessors: [new SimpleSpanProcessor(exporter)] }, 0.25, draws([0.1, 0.9, 0.25, 0.2499]));
  const tracer = provider.getTracer('test');
  const kind = SpanKind.SERVER;
  expect([1, 2, 3, 4].map(() => tracer.startSpan('request', { kind }, ROOT_CONTEXT).isRecording())).toEqual([true, false, false, true]);
  const remote = (traceFlags: TraceFlags): Context => trace.setSpanContext(ROOT_CONTEXT, { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags, isRemote: true });
  expect(tracer.startSpan('request', { kind }, remote(TraceFlags.SAMPLED)).isRecording()).toBe(true);
  expect(tracer.startSpan('request', { kind }, remote(TraceFlags.NONE)).isRecording()).toBe(false);
  expect(tracer.startActiveSpan('request', { kind }, remote(TraceFlags.SAMPLED), (span) => span.isRecording())).toBe(true);
  await provider.shutdown();
});

function draws(values: readonly number[]): () => number {
  const left = [...values];
  return () => left.shift() ?? 1;
}
