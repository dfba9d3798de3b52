/** The bounded contexts. Each owns one stream; aggregates that must change together live in one context. */
export const contexts = ['access', 'registry', 'fleet', 'scaling', 'routing', 'usage', 'billing', 'batch'] as const;
export type Context = (typeof contexts)[number];

export type StreamName = `EV_${Uppercase<Context>}`;

/** `EV_ACCESS` for `access`, and so on. */
export function streamOf(context: Context): StreamName {
  return `EV_${context.toUpperCase()}` as StreamName;
}

/** The subject of one aggregate: one literal subject each, so that a load is a direct get and versions are per aggregate. */
export function subjectOf(ref: { readonly context: Context; readonly aggregate: string; readonly id: string }): string {
  return `ev.${ref.context}.${ref.aggregate}.${ref.id}`;
}

/** The inverse of {@link subjectOf}; undefined when `subject` is not an event subject. */
export function refOf(subject: string): { context: Context; aggregate: string; id: string } | undefined {
  const [root, context, aggregate, id, ...rest] = subject.split('.');
  if (root !== 'ev' || aggregate === undefined || id === undefined || rest.length > 0) return undefined;
  if (!(contexts as readonly string[]).includes(context ?? '')) return undefined;
  return { context: context as Context, aggregate, id };
}
