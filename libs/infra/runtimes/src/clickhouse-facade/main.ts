// The process that serves ClickHouse's HTTP interface out of chdb. The parent hands over its configuration in the environment.
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { ChdbEngine } from './chdb-engine.js';
import { FACADE_CONFIG_VARIABLE, facadeConfig } from './facade-config.js';
import { createFacadeServer } from './facade-server.js';

/** Requests under way get this long once the process is asked to stop. */
const STOP_TIMEOUT_MS = 10_000;

const config = facadeConfig.parse(JSON.parse(process.env[FACADE_CONFIG_VARIABLE] ?? '{}'));
mkdirSync(config.dataDir, { recursive: true, mode: 0o700 });
const engine = new ChdbEngine(config.chdbModule, config.dataDir);
await engine.prepare(config.database);
const server = createFacadeServer(engine, config);
server.listen(config.port, '127.0.0.1');
await once(server, 'listening');
process.stdout.write(`ClickHouse's HTTP interface listens on 127.0.0.1:${config.port}\n`);

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
    server.close();
    server.closeIdleConnections();
    void engine.close().then(() => {
      server.closeAllConnections();
      process.exit(0);
    });
  });
}
