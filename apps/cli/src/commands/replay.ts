import { Flags } from '@oclif/core';
import { verifyBody } from '@penstock/contract-http';
import { ApiCommand, EXIT } from '../api-command.js';
import { table } from '../terminal/table.js';

export class ReplayVerify extends ApiCommand {
  static override summary = 'Rebuild every projection from the first event into a shadow and compare it, byte for byte, with the live one.';
  static override flags = { swap: Flags.boolean({ description: 'put the rebuilt tables in the place of the live ones' }) };

  async run(): Promise<unknown> {
    const { flags } = await this.parse(ReplayVerify);
    const result = await this.clientFor(flags).call('POST', '/admin/v1/replay/verify', verifyBody, { swap: flags.swap });
    this.log(table(['PROJECTION', 'IDENTICAL', 'EVENTS', 'ROWS', 'DIGEST'], result.projections.map((projection) => [projection.name, projection.identical ? 'yes' : 'NO', String(projection.events), String(projection.rows), projection.rebuiltDigest.slice(0, 16)])));
    for (const owner of result.unavailable) this.logToStderr(`${owner} did not answer, so its projections were not compared. Start it and verify again.`);
    if (!result.identical || result.unavailable.length > 0) process.exitCode = EXIT.failed;
    return result;
  }
}
