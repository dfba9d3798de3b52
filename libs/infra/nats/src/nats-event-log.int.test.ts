import { startTestNats } from '@penstock/testing-kit';
import { eventLogSuite } from '@penstock/testing-kit/suites';
import { connectNats } from './connect-nats.js';
import { ensureStreams } from './ensure-streams.js';
import { NatsEventLog } from './nats-event-log.js';

eventLogSuite('NATS JetStream', async () => {
  const server = await startTestNats();
  const link = await connectNats({ url: server.url, name: 'penstock/test' });
  await ensureStreams(link);
  return {
    log: new NatsEventLog(link, { consumerName: 'suite' }),
    close: async () => {
      await link.close();
      await server.close();
    },
  };
});
