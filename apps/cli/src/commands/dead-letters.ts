import { Args } from '@oclif/core';
import { deadLetterList, redriveBody } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import { table } from '../terminal/table.js';

export class DeadLettersList extends ApiCommand {
  static override summary = 'List events that could not be handled, with the reason.';

  async run(): Promise<unknown> {
    const { flags } = await this.parse(DeadLettersList);
    const { data } = await this.clientFor(flags).call('GET', '/admin/v1/dead-letters', deadLetterList);
    this.log(table(['ID', 'STREAM', 'SEQUENCE', 'CONSUMER', 'TYPE', 'DELIVERIES', 'REASON'], data.map((letter) => [letter.id, letter.stream, String(letter.sequence), letter.consumer, letter.type ?? '-', String(letter.deliveries), letter.reason])));
    return data;
  }
}

export class DeadLettersRedrive extends ApiCommand {
  static override summary = 'Hand dead letters to their consumer again, after the cause was mended.';
  static override strict = false;
  static override args = { ids: Args.string({ description: 'ids as `dead-letters list` shows them; all when left out' }) };

  async run(): Promise<unknown> {
    const { argv, flags } = await this.parse(DeadLettersRedrive);
    const result = await this.clientFor(flags).call('POST', '/admin/v1/dead-letters/redrive', redriveBody, argv.length === 0 ? {} : { ids: argv });
    this.log(`${result.redriven} dead letters were handed over again.`);
    return result;
  }
}
