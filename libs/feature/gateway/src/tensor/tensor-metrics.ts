import { Counter, type Registry } from 'prom-client';

/** Figures of inference on tensors. Every request that was let in counts, with whatever answer, 429 and 503 included. */
export class TensorMetrics {
  readonly inferences: Counter<'model' | 'status'>;
  readonly elements: Counter<'model' | 'direction'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.inferences = new Counter({ name: 'penstock_inferences_total', help: 'Inferences on tensors by how they ended', labelNames: ['model', 'status'], registers });
    this.elements = new Counter({ name: 'penstock_tensor_elements_total', help: 'Elements of tensors taken and given', labelNames: ['model', 'direction'], registers });
  }
}
