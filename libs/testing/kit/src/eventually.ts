const LIMIT_MS = 20_000;
const POLL_MS = 10;

/** Waits until `read` gives a value that `isDone` accepts, and returns it. Fails with the last value after `limitMs`. */
export async function eventually<Value>(read: () => Value | Promise<Value>, isDone: (value: Value) => boolean, limitMs = LIMIT_MS): Promise<Value> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const value = await read();
    if (isDone(value)) return value;
    if (performance.now() > deadline) throw new Error(`still not so after ${limitMs} ms: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
