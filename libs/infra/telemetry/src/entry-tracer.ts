import { context, isSpanContextValid, SpanKind, trace, TraceFlags, type Context, type Span, type SpanOptions, type Tracer } from '@opentelemetry/api';
import { NodeTracerProvider, SamplingDecision, TraceIdRatioBasedSampler, type Sampler, type SamplingResult } from '@opentelemetry/sdk-trace-node';

type SpanWork = (span: Span) => unknown;

/** What a request that is not sampled gets: it records nothing and nobody is told of it. */
const unsampled = trace.wrapSpanContext({ traceId: 'f'.repeat(32), spanId: 'f'.repeat(16), traceFlags: TraceFlags.NONE });

/** Where a trace begins with a request from outside. */
function isEntry(options: SpanOptions | undefined, parent: Context): boolean {
  if (options?.kind !== SpanKind.SERVER) return false;
  const above = options.root === true ? undefined : trace.getSpanContext(parent);
  return above === undefined || !isSpanContextValid(above);
}

/**
 * Draws for each request from outside, that brings no trace along, whether it is sampled before anything is made for it: ids and a span
 * that nobody will see cost as much as the rest of the request's accounting.
 */
class EntryTracer implements Tracer {
  constructor(private readonly tracer: Tracer, private readonly ratio: number, private readonly random: () => number) {}

  startSpan(name: string, options?: SpanOptions, parent: Context = context.active()): Span {
    return isEntry(options, parent) && this.random() >= this.ratio ? unsampled : this.tracer.startSpan(name, options, parent);
  }

  startActiveSpan<Work extends SpanWork>(name: string, work: Work): ReturnType<Work>;
  startActiveSpan<Work extends SpanWork>(name: string, options: SpanOptions, work: Work): ReturnType<Work>;
  startActiveSpan<Work extends SpanWork>(name: string, options: SpanOptions, parent: Context, work: Work): ReturnType<Work>;
  startActiveSpan<Work extends SpanWork>(name: string, ...rest: readonly (SpanOptions | Context | Work)[]): ReturnType<Work> {
    const work = rest.at(-1) as Work;
    const options = rest.length > 1 ? (rest[0] as SpanOptions) : undefined;
    const parent = rest.length > 2 ? (rest[1] as Context) : context.active();
    const span = this.startSpan(name, options, parent);
    return context.with(trace.setSpan(parent, span), work as (span: Span) => ReturnType<Work>, undefined, span);
  }
}

/** Samples what {@link EntryTracer} drew, and so many of the traces that begin inside. */
export class EntrySampler implements Sampler {
  private readonly inside: TraceIdRatioBasedSampler;

  constructor(ratio: number) {
    this.inside = new TraceIdRatioBasedSampler(ratio);
  }

  shouldSample(parent: Context, traceId: string, _name: string, kind: SpanKind): SamplingResult {
    return kind === SpanKind.SERVER ? { decision: SamplingDecision.RECORD_AND_SAMPLED } : this.inside.shouldSample(parent, traceId);
  }

  toString(): string {
    return `EntrySampler{${this.inside.toString()}}`;
  }
}

/** A provider whose tracers draw at the entry. `ratio` is the share of sampled traces, 0 to 1. */
export class EntryTracerProvider extends NodeTracerProvider {
  private readonly ratio: number;
  private readonly random: () => number;

  constructor(config: ConstructorParameters<typeof NodeTracerProvider>[0], ratio: number, random: () => number = Math.random) {
    super(config);
    this.ratio = ratio;
    this.random = random;
  }

  override getTracer(...named: Parameters<NodeTracerProvider['getTracer']>): Tracer {
    return new EntryTracer(super.getTracer(...named), this.ratio, this.random);
  }
}
