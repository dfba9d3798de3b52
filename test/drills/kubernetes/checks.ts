/** One claim after the other: a failed one is told and the drill goes on. */
export class Checks {
  readonly results: { readonly name: string; readonly failure: string | null; readonly seconds: number }[] = [];

  constructor(private readonly say: (text: string) => void) {}

  get failed(): number {
    return this.results.filter((result) => result.failure !== null).length;
  }

  async check(name: string, claim: () => Promise<void>): Promise<void> {
    const startedMs = performance.now();
    const failure = await claim().then(() => null, (error: unknown) => (error instanceof Error ? error.message : String(error)));
    const seconds = Math.round((performance.now() - startedMs) / 100) / 10;
    this.results.push({ name, failure, seconds });
    this.say(`${failure === null ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)${failure === null ? '' : `: ${failure}`}`);
  }
}

export function must(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}
