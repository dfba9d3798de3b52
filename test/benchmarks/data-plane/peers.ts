import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFreePort } from '@penstock/infra-runtimes';
import { ensurePeer, type PeerName } from './install-peers.js';
import type { Target } from './load-client.js';
import { MeasuredProcess, untilListening } from './processes.js';

/** A proxy that runs, on a core of its own. */
export interface RunningTarget extends Target {
  readonly process: MeasuredProcess;
}

export interface PeerOptions {
  readonly folder: string;
  readonly enginePorts: readonly number[];
  readonly say: (text: string) => void;
}

const MODEL = 'bench-model';
/** The one key that nginx and LiteLLM know. */
const PEER_KEY = 'sk-bench-0000000000000000';

/** Starts one peer with what it needs for a fair comparison: one core, a key where it has keys, no buffering of streams, no logs of requests. */
export async function startPeer(name: PeerName, options: PeerOptions): Promise<RunningTarget> {
  const port = await findFreePort();
  const folder = join(options.folder, name);
  mkdirSync(folder, { recursive: true });
  const logFile = join(folder, 'log');
  const peer = await ensurePeer(name, options.say);
  const [command, args, env] = commandOf(name, { ...options, folder, port, program: peer.program, installedAt: peer.folder });
  const process = MeasuredProcess.start(command, args, { logFile, env, cwd: folder, measured: true });
  await untilListening(port, process, name, logFile);
  const authorization = `Bearer ${PEER_KEY}`;
  const headers = name === 'portkey' ? { authorization, 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `http://127.0.0.1:${options.enginePorts[0] ?? 0}/v1` } : { authorization };
  return { name, port, headers, model: MODEL, process };
}

interface PeerStart extends PeerOptions {
  readonly port: number;
  readonly program: string;
  readonly installedAt: string;
}

function commandOf(name: PeerName, start: PeerStart): readonly [string, readonly string[], NodeJS.ProcessEnv] {
  switch (name) {
    case 'nginx':
      return [start.program, ['-p', start.folder, '-c', written(start, 'nginx.conf', nginxConfig(start)), '-e', join(start.folder, 'error.log')], process.env];
    case 'envoy':
      return [start.program, ['-c', written(start, 'envoy.yaml', envoyConfig(start)), '--concurrency', '1', '--disable-hot-restart', '-l', 'warn'], process.env];
    case 'portkey':
      return [process.execPath, ['--import', join(start.installedAt, 'listen-loopback.mjs'), start.program, '--headless', `--port=${start.port}`], { ...process.env, TRUSTED_CUSTOM_HOSTS: '127.0.0.1', NODE_ENV: 'production' }];
    case 'litellm':
      return [start.program, ['--config', written(start, 'litellm.yaml', litellmConfig(start)), '--host', '127.0.0.1', '--port', String(start.port), '--num_workers', '1'], {
        ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_MODE: 'PRODUCTION', LITELLM_LOG: 'ERROR', NO_DOCS: 'True', DISABLE_ADMIN_UI: 'True',
      }];
  }
}

function written(start: PeerStart, file: string, text: string): string {
  const path = join(start.folder, file);
  writeFileSync(path, text);
  return path;
}

const nginxConfig = ({ port, enginePorts }: PeerStart): string => `daemon off;
worker_processes 1;
pid nginx.pid;
events { worker_connections 16384; }
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  client_body_buffer_size 256k; client_max_body_size 16m;
  keepalive_requests 1000000;
  upstream engines { least_conn; ${enginePorts.map((engine) => `server 127.0.0.1:${engine};`).join(' ')} keepalive 512; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      if ($http_authorization != "Bearer ${PEER_KEY}") { return 401; }
      proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 600s;
    }
  }
}
`;

const envoyConfig = ({ port, enginePorts }: PeerStart): string => JSON.stringify({
  static_resources: {
    listeners: [{
      address: { socket_address: { address: '127.0.0.1', port_value: port } },
      filter_chains: [{
        filters: [{
          name: 'envoy.filters.network.http_connection_manager',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', stat_prefix: 'in',
            route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix: '/', headers: [{ name: 'authorization', string_match: { exact: `Bearer ${PEER_KEY}` } }] }, route: { cluster: 'engines', timeout: '0s' } }] }] },
            http_filters: [{ name: 'envoy.filters.http.router', typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' } }],
          },
        }],
      }],
    }],
    clusters: [{
      name: 'engines', type: 'STATIC', lb_policy: 'LEAST_REQUEST',
      circuit_breakers: { thresholds: [{ max_connections: 20_000, max_pending_requests: 20_000, max_requests: 20_000 }] },
      load_assignment: { cluster_name: 'engines', endpoints: [{ lb_endpoints: enginePorts.map((engine) => ({ endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: engine } } } })) }] },
    }],
  },
});

const litellmConfig = ({ enginePorts }: PeerStart): string => JSON.stringify({
  model_list: enginePorts.map((engine) => ({ model_name: MODEL, litellm_params: { model: `openai/${MODEL}`, api_base: `http://127.0.0.1:${engine}/v1`, api_key: 'sk-upstream' } })),
  general_settings: { master_key: PEER_KEY },
  litellm_settings: { telemetry: false, num_retries: 0 },
});
