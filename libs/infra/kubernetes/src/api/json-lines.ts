/** One JSON object of a watch may be this long; etcd stores no larger one. */
const LINE_BYTES_MAX = 8 * 1_048_576;
const LINE_FEED = 10;

/** The JSON values of a stream with one on each line. Throws on a line that is not JSON or too long. */
export async function* jsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      const line = Buffer.concat([...parts, chunk.subarray(start, end)]).toString('utf8').trim();
      parts = [];
      bytes = 0;
      start = end + 1;
      if (line !== '') yield JSON.parse(line) as unknown;
    }
    if (start < chunk.length) {
      bytes += chunk.length - start;
      if (bytes > LINE_BYTES_MAX) throw new Error(`a line of a watch is longer than ${LINE_BYTES_MAX} bytes`);
      parts.push(chunk.subarray(start));
    }
  }
  const rest = Buffer.concat(parts).toString('utf8').trim();
  // A connection that breaks in the middle of a line has told nothing by it.
  if (rest.endsWith('}')) yield JSON.parse(rest) as unknown;
}
