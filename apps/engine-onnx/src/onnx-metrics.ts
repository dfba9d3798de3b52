import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { WorkQueue } from './work-queue.js';

const SECONDS_BUCKETS = [0.0001, 0.001, 0.01, 0.1, 1, 10];

/** Figures of the engine. Every answer counts, refusals included. */
export class OnnxMetrics {
  readonly registry = new Registry();
  readonly requests: Counter<'outcome'>;
  readonly seconds: Histogram;

  constructor(queue: WorkQueue) {
    const registers = [this.registry];
    this.requests = new Counter({ name: 'onnx_requests_total', help: 'Inferences by how they ended', labelNames: ['outcome'], registers });
    this.seconds = new Histogram({ name: 'onnx_inference_duration_seconds', help: 'Time in ONNX Runtime', buckets: SECONDS_BUCKETS, registers });
    new Gauge({ name: 'onnx_requests_running', help: 'Inferences being worked on', registers, collect() { this.set(queue.running); } });
    new Gauge({ name: 'onnx_requests_waiting', help: 'Inferences that wait', registers, collect() { this.set(queue.waiting); } });
  }
}
