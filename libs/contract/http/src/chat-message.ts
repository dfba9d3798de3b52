import { z } from 'zod';

/**
 * What the kinds of OpenAI's API have beside their `type`; other kinds are an engine's to know. An engine that misses one of these
 * fails as if it were broken itself, so they are looked at before.
 */
export const contentPartKinds: Readonly<Record<string, z.ZodType>> = {
  text: z.looseObject({ text: z.string() }),
  image_url: z.looseObject({ image_url: z.union([z.string(), z.looseObject({ url: z.string() })]) }),
  input_audio: z.looseObject({ input_audio: z.looseObject({ data: z.string(), format: z.string() }) }),
  file: z.looseObject({ file: z.looseObject({}) }),
  refusal: z.looseObject({ refusal: z.string() }),
};

export const toolKinds: Readonly<Record<string, z.ZodType>> = {
  function: z.looseObject({ function: z.looseObject({ name: z.string().min(1).max(128), description: z.string().nullable().optional(), parameters: z.looseObject({}).nullable().optional(), strict: z.boolean().nullable().optional() }) }),
  custom: z.looseObject({ custom: z.looseObject({ name: z.string().min(1).max(128) }) }),
};

export const toolCallKinds: Readonly<Record<string, z.ZodType>> = {
  function: z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.string() }) }),
  custom: z.looseObject({ custom: z.looseObject({ name: z.string(), input: z.string() }) }),
};

export const responseFormatKinds: Readonly<Record<string, z.ZodType>> = {
  json_schema: z.looseObject({ json_schema: z.looseObject({ name: z.string().min(1).max(64), schema: z.looseObject({}).nullable().optional(), strict: z.boolean().nullable().optional() }) }),
};
