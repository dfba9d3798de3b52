/** One page of an ordered list: what follows the item with id `after`, at most `limit`. An unknown `after` gives an empty page. */
export function pageOf<Item>(items: readonly Item[], idOf: (item: Item) => string, query: { readonly after?: string | undefined; readonly limit: number }): { readonly page: readonly Item[]; readonly hasMore: boolean } {
  const position = query.after === undefined ? -1 : items.findIndex((item) => idOf(item) === query.after);
  if (query.after !== undefined && position < 0) return { page: [], hasMore: false };
  const rest = items.slice(position + 1);
  return { page: rest.slice(0, query.limit), hasMore: rest.length > query.limit };
}
