/** What a client is pointed at. */
export interface Target {
  /** With `/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** For what only an operator may see. */
  readonly adminKey?: string | undefined;
  readonly model: string;
  readonly engine: string;
}

/** One statement about the platform, checked through one client. It throws when it does not hold. */
export interface Check {
  readonly name: string;
  run(target: Target): Promise<void>;
}

export interface CheckResult {
  readonly client: string;
  readonly engine: string;
  readonly check: string;
  readonly ok: boolean;
  readonly detail?: string | undefined;
}

/** Runs the checks of one client one after the other; a failing one does not stop the rest. */
export async function runChecks(client: string, checks: readonly Check[], target: Target): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  for (const check of checks) {
    try {
      await check.run(target);
      results.push({ client, engine: target.engine, check: check.name, ok: true });
    } catch (error) {
      results.push({ client, engine: target.engine, check: check.name, ok: false, detail: error instanceof Error ? error.message : String(error) });
    }
  }
  return results;
}
