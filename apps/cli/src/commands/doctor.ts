import { Command } from '@oclif/core';
import { diagnose, type Finding } from '@penstock/infra-composition';
import { EXIT } from '../api-command.js';
import { dataFolder, findTarget } from '../client/find-target.js';
import { table } from '../terminal/table.js';

const PROBE_TIMEOUT_MS = 5_000;
const MARKS = { ok: 'ok', warning: 'warning', failed: 'FAILED' } as const;

export class Doctor extends Command {
  static override summary = 'Check this machine and, where one runs, the installation: what is missing and what to do about it.';
  static override enableJsonFlag = true;

  async run(): Promise<unknown> {
    await this.parse(Doctor);
    const findings = [...(await diagnose(dataFolder(), process.env)), await installation()];
    this.log(table(['CHECK', 'RESULT', 'DETAIL'], findings.map((finding) => [finding.name, MARKS[finding.status], finding.detail])));
    for (const finding of findings) if (finding.hint !== undefined) this.log(`\n${finding.name}: ${finding.hint}`);
    if (findings.some((finding) => finding.status === 'failed')) process.exitCode = EXIT.failed;
    return { findings };
  }
}

/** Asks a running installation whether it is ready. None running is no fault. */
async function installation(): Promise<Finding> {
  const name = 'installation';
  let url: string;
  try {
    url = findTarget({}).url;
  } catch {
    return { name, status: 'ok', detail: 'none in this folder yet: `npm run up` starts one' };
  }
  try {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    const body = (await answer.json()) as { checks?: Record<string, string> };
    const problems = Object.entries(body.checks ?? {}).filter(([, result]) => result !== 'ok').map(([check, result]) => `${check}: ${result}`);
    if (answer.ok && problems.length > 0) return { name, status: 'warning', detail: `${url} works, without ${problems.join('; ')}`, hint: 'Requests to warm models go on; changes wait until it is back.' };
    if (answer.ok) return { name, status: 'ok', detail: `${url} is ready` };
    return { name, status: 'failed', detail: `${url} is not ready: ${problems.join('; ')}`, hint: 'Look into the log file in its data folder.' };
  } catch {
    return { name, status: 'warning', detail: `${url} does not answer`, hint: 'It is not running: start it with `npm run up`.' };
  }
}
