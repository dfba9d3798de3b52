import { startTestNats } from '@penstock/testing-kit';
import { sharedRecordsSuite } from '@penstock/testing-kit/suites';
import { connectNats } from './connect-nats.js';
import { NatsSharedRecords } from './nats-shared-records.js';

sharedRecordsSuite('NATS', async () => {
  const server = await startTestNats();
  const link = await connectNats({ url: server.url, name: 'penstock/test' });
  return {
    records: new NatsSharedRecords(link, { bucket: 'SUITE', ttlMs: 60_000, bytesMax: 16 * 1_024 * 1_024 }),
    close: async () => {
      await link.close();
      await server.close();
    },
  };
});
