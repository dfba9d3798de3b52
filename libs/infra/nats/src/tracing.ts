import { context, propagation, SpanKind, SpanStatusCode, trace, type Attributes } from '@opentelemetry/api';

const tracer = trace.getTracer('@penstock/infra-nats');

/** W3C `traceparent` of the span that is active here; undefined when nothing is traced. */
export function activeTraceparent(): string | undefined {
  const span = trace.getActiveSpan()?.spanContext();
  if (span === undefined) return undefined;
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`;
}

/** Runs `work` inside a span that continues the sender's trace. A rejection is recorded and passed on. */
export async function inSpan<Result>(name: string, kind: SpanKind, traceparent: string | undefined, attributes: Attributes, work: () => Promise<Result>): Promise<Result> {
  const parent = traceparent === undefined ? context.active() : propagation.extract(context.active(), { traceparent });
  const span = tracer.startSpan(name, { kind, attributes }, parent);
  try {
    return await context.with(trace.setSpan(parent, span), work);
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : String(error) });
    throw error;
  } finally {
    span.end();
  }
}

export { SpanKind };
