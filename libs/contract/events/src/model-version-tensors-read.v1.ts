import { z } from 'zod';
import { defineEvent } from './define-event.js';
import { id } from './fields.js';

/** Datatypes of the Open Inference Protocol, version 2. */
export const tensorDatatype = z.enum(['BOOL', 'UINT8', 'UINT16', 'UINT32', 'UINT64', 'INT8', 'INT16', 'INT32', 'INT64', 'FP16', 'FP32', 'FP64', 'BF16', 'BYTES']);
export type TensorDatatype = z.infer<typeof tensorDatatype>;

/** One input or output of a model. */
export const tensorSpec = z.object({
  name: z.string().min(1).max(500),
  datatype: tensorDatatype,
  /** Elements along each dimension; -1 where any number is taken. */
  shape: z.array(z.int().min(-1)).max(32),
});
export type TensorSpec = z.infer<typeof tensorSpec>;

export const modelVersionTensorsReadV1 = defineEvent({
  type: 'model-version.tensors-read.v1',
  context: 'registry',
  aggregate: 'model-version',
  summary: 'The header of a registered model says which tensors it takes and gives.',
  schema: z.object({
    modelVersionId: id,
    inputs: z.array(tensorSpec).max(1_000),
    outputs: z.array(tensorSpec).max(1_000),
  }),
  example: {
    modelVersionId: 'mv_01',
    inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 8] }],
    outputs: [{ name: 'logits', datatype: 'FP32', shape: [-1, 3] }],
  },
});

export type ModelVersionTensorsReadV1 = z.infer<typeof modelVersionTensorsReadV1.schema>;
