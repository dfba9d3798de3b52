import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { SequencedUsage, UsageSink } from '@penstock/domain-usage';
import type { ClickhouseLink } from './connect-clickhouse.js';
import { toUsageRow, USAGE_COLUMNS } from './usage-row.js';

/** Usage into `usage_raw_v1`, one insert per call. */
export class ClickhouseUsageSink implements UsageSink {
  constructor(private readonly link: ClickhouseLink) {}

  async write(records: readonly SequencedUsage[]): Promise<void> {
    if (records.length === 0) return;
    // The token stands in the text: as a setting of the connection it would outlive this insert in an embedded server.
    const query = `INSERT INTO usage_raw_v1 (${USAGE_COLUMNS.join(', ')}) SETTINGS insert_deduplication_token = '${tokenOf(records)}' FORMAT JSONCompactEachRow`;
    const body = records.map((record) => `${JSON.stringify(toUsageRow(record))}\n`).join('');
    await this.link.with(async (client) => {
      const { stream } = await client.exec({ query, values: Readable.from([Buffer.from(body)], { objectMode: false }) });
      stream.resume();
      await finished(stream);
    });
  }
}

/** The same for the same records only, so that an insert repeated after an unclear outcome stores no second copy. */
function tokenOf(records: readonly SequencedUsage[]): string {
  const hash = createHash('sha256');
  for (const { record, sequence } of records) hash.update(`${sequence} ${record.requestId}\n`);
  return hash.digest('hex');
}
