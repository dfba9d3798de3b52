import { serviceConfig } from '@penstock/feature-shell';
import { z } from 'zod';

const milliseconds = (fallback: number) => z.coerce.number().int().min(1).max(3_600_000).default(fallback);

/** The settings of a gateway. */
export const gatewayConfig = serviceConfig.extend({
  /** Names this gateway in leases; an id of its own for each instance. Left out, one is made at each start. */
  GATEWAY_ID: z.string().regex(/^[A-Za-z0-9_-]{1,128}$/).optional(),
  /** Opens everything. For the first steps of an installation; make admin keys with it. */
  ADMIN_KEY: z.string().min(16),
  /** Shared with the batch service, which calls with it on behalf of tenants. Left out, no such calls are taken. */
  INTERNAL_TOKEN: z.string().min(16).optional(),
  /** Largest JSON body. */
  REQUEST_BYTES_MAX: z.coerce.number().int().min(1_024).max(256 * 1_024 * 1_024).default(8 * 1_024 * 1_024),
  /** Largest uploaded file. */
  UPLOAD_BYTES_MAX: z.coerce.number().int().min(1_024).max(512 * 1_024 * 1_024).default(200 * 1_024 * 1_024),
  /** Chat requests in work or waiting at once; one more is refused. */
  REQUESTS_IN_FLIGHT_MAX: z.coerce.number().int().min(1).max(100_000).default(4_000),
  /** New requests are turned away while the event loop is busy and a timer of it is later than this. */
  SHED_LOOP_LAG_MS: milliseconds(20),
  /** How long a request may wait for a replica, a cold start included. */
  ADMISSION_WAIT_MS_MAX: z.coerce.number().int().min(0).max(600_000).default(300_000),
  /** A router that neither answers nor is heard for so long counts as gone. */
  ROUTER_SILENCE_MS_MAX: milliseconds(3_500),
  /** From sending the request to the engine until its first token. An endpoint may have its own: its engine option `first_token_timeout_ms`. */
  FIRST_TOKEN_TIMEOUT_MS: milliseconds(60_000),
  /** Between two events of an engine's stream; of one endpoint, `chunk_gap_timeout_ms`. */
  CHUNK_GAP_TIMEOUT_MS: milliseconds(30_000),
  /** From sending the request to the engine until the end of the answer, which shows no sign of life before where it does not come in a stream; of one endpoint, `total_timeout_ms`. As long as OpenAI's clients wait. */
  TOTAL_TIMEOUT_MS: milliseconds(600_000),
  /** How long a client may take nothing while an answer is ready for it. */
  CLIENT_STALL_TIMEOUT_MS: milliseconds(60_000),
  /** A stream that waits longer than this gets its headers and heartbeats before its first token. */
  EARLY_HEADERS_AFTER_MS: milliseconds(10_000),
  HEARTBEAT_INTERVAL_MS: milliseconds(5_000),
  /** Origins whose pages may call the public API from a browser, with commas between them; `*` for all, nothing for none. */
  CORS_ORIGINS: z.string().max(10_000).default('*').transform((text) => text.split(',').map((origin) => origin.trim()).filter((origin) => origin !== '')),
});
export type GatewayConfig = z.infer<typeof gatewayConfig>;
