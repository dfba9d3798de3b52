import { createHmac, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile, writeJsonFile } from './json-file.js';

const SECRET_BYTES = 32;
/** At least 128 random bits in characters that need no escaping in a URL. */
const secret = z.string().regex(/^[A-Za-z0-9_-]{22,128}$/, '22 to 128 letters, digits, underscores or hyphens');

/** What one instance keeps secret. A file of an older version that lacks some gets them at the next start. */
export const instanceSecrets = z.object({
  natsPassword: secret,
  postgresPassword: secret,
  clickhousePassword: secret,
  /** Key of the HMAC under which API keys are stored. */
  apiKeyPepper: secret,
  /** Opens the admin API. */
  adminKey: secret,
  /** Key from which the cache salt of each tenant is derived. */
  cacheSaltKey: secret,
  /** Lets the batch service call the gateway in the name of a tenant. */
  internalToken: secret,
});
export type InstanceSecrets = z.infer<typeof instanceSecrets>;

/** The password of one user of NATS: derived under a name of its own, so that a service that knows its own learns no other. */
export function natsPasswordOf(secrets: InstanceSecrets, user: string): string {
  return createHmac('sha256', secrets.natsPassword).update(`nats user ${user}`).digest('base64url');
}

/** Reads the secrets of an instance, and makes those that are missing. */
export async function loadSecrets(dataDir: string): Promise<InstanceSecrets> {
  const path = join(dataDir, 'secrets.json');
  const stored = (await readJsonFile(path, instanceSecrets.partial())) ?? {};
  const names = Object.keys(instanceSecrets.shape) as (keyof InstanceSecrets)[];
  const fresh = Object.fromEntries(names.map((name) => [name, randomBytes(SECRET_BYTES).toString('base64url')]));
  const secrets = instanceSecrets.parse({ ...fresh, ...stored });
  if (names.some((name) => stored[name] === undefined)) await writeJsonFile(path, secrets);
  return secrets;
}
