import { tensorDatatype, tensorSpec } from '@penstock/contract-events';
import { limitMet } from '@penstock/contract-commands';
import { z } from 'zod';

/** Values of `parameters`: text, numbers and booleans, as the protocol has them. */
const parameters = z.record(z.string().max(200), z.union([z.string().max(100_000), z.number(), z.boolean()]));

const dimension = z.int().min(0);

/** JSON head of `POST /v2/models/{model}/infer`; unknown fields pass. */
export const inferRequest = z.looseObject({
  id: z.string().max(1_000).optional(),
  parameters: parameters.optional(),
  inputs: z.array(z.looseObject({
    name: z.string().min(1).max(500),
    shape: z.array(dimension).max(32),
    datatype: tensorDatatype,
    parameters: parameters.optional(),
    /** Flat or nested, in row-major order; left out where the tensor follows in binary. */
    data: z.array(z.unknown()).optional(),
  })).min(1).max(1_000),
  outputs: z.array(z.looseObject({ name: z.string().min(1).max(500), parameters: parameters.optional() })).max(1_000).optional(),
});
export type InferRequest = z.infer<typeof inferRequest>;

/** JSON head of the answer. */
export const inferResponse = z.looseObject({
  id: z.string().optional(),
  model_name: z.string(),
  model_version: z.string(),
  parameters: parameters.optional(),
  outputs: z.array(z.looseObject({
    name: z.string(),
    shape: z.array(z.int()),
    datatype: z.string(),
    parameters: parameters.optional(),
    /** Values that JSON has no number for are the strings `NaN`, `Infinity` and `-Infinity`. */
    data: z.array(z.unknown()).optional(),
  })),
});
export type InferResponse = z.infer<typeof inferResponse>;

/** Answer of `GET /v2`. */
export const tensorServer = z.object({ name: z.string(), version: z.string(), extensions: z.array(z.string()) });

/** Answer of `GET /v2/models/{model}`. */
export const tensorModel = z.looseObject({
  name: z.string(),
  versions: z.array(z.string()).optional(),
  platform: z.string(),
  inputs: z.array(tensorSpec),
  outputs: z.array(tensorSpec),
});
export type TensorModel = z.infer<typeof tensorModel>;

/** Every error under `/v2`: the protocol has the one string, `code` is this platform's. */
export const tensorErrorBody = z.object({ error: z.string(), code: z.string(), limit: limitMet.optional() });
