import { context, propagation, SpanKind, SpanStatusCode, trace, type Span } from '@opentelemetry/api';
import type { IncomingHttpHeaders } from 'node:http';

const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

const tracer = trace.getTracer('penstock.gateway');

/** The span of one request, and what to send on so that router and engine join the same trace. */
export class RequestTrace {
  private readonly span: Span;
  /** W3C trace context; undefined when neither we nor the caller trace. */
  readonly traceparent: string | undefined;

  constructor(name: string, headers: IncomingHttpHeaders, attributes: Readonly<Record<string, string>>) {
    const given = headers['traceparent'];
    const parent = given === undefined ? context.active() : propagation.extract(context.active(), headers);
    this.span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
    if (this.span.isRecording()) {
      const { traceId, spanId, traceFlags } = this.span.spanContext();
      this.traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
    } else this.traceparent = typeof given === 'string' && TRACEPARENT.test(given) ? given : undefined;
  }

  end(error?: unknown): void {
    if (error !== undefined) this.span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.name : 'error' });
    this.span.end();
  }
}
