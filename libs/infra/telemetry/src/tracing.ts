import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, ParentBasedSampler, type SpanProcessor } from '@opentelemetry/sdk-trace-node';
import { EntrySampler, EntryTracerProvider } from './entry-tracer.js';
import { randomHex } from './random-ids.js';

export interface TracingOptions {
  readonly serviceName: string;
  /** Base URL of an OTLP/HTTP collector; without one, trace ids still travel but nothing is exported. */
  readonly otlpEndpoint?: string | undefined;
  /** Share of new traces that are sampled, 0 to 1. */
  readonly sampleRatio?: number | undefined;
  /** More processors, for example an in-memory one in tests. */
  readonly processors?: readonly SpanProcessor[] | undefined;
}

/**
 * Registers W3C trace context and a tracer for this process. Spans are made by hand where they matter: automatic HTTP
 * instrumentation costs half again as much per request.
 */
export function startTracing(options: TracingOptions): { stop(): Promise<void> } {
  const processors: SpanProcessor[] = [...(options.processors ?? [])];
  if (options.otlpEndpoint !== undefined) {
    processors.push(new BatchSpanProcessor(new OTLPTraceExporter({ url: `${options.otlpEndpoint.replace(/\/$/, '')}/v1/traces` })));
  }
  const ratio = options.sampleRatio ?? (processors.length > 0 ? 1 : 0);
  const provider = new EntryTracerProvider({
    idGenerator: { generateTraceId: () => randomHex(16), generateSpanId: () => randomHex(8) },
    resource: resourceFromAttributes({ 'service.name': options.serviceName, 'service.namespace': 'penstock' }),
    sampler: new ParentBasedSampler({ root: new EntrySampler(ratio) }),
    spanProcessors: processors,
  }, ratio);
  provider.register();
  return { stop: () => provider.shutdown() };
}
