import { z } from 'zod';

export type JsonObject = Readonly<Record<string, unknown>>;

/** The input side of a zod schema as JSON Schema: what a writer may send, with defaults optional. */
export function jsonSchemaOf(schema: z.ZodType): JsonObject {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', target: 'draft-2020-12' }) as Record<string, unknown>;
  return rest;
}
