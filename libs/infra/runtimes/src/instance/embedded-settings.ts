import { z } from 'zod';

/** The servers that an instance can run itself. */
export type EmbeddedServerName = 'nats' | 'postgres' | 'clickhouse';

/** Names of the result's fields. */
export interface UrlFields {
  readonly nats: 'natsUrl';
  readonly postgres: 'databaseUrl';
  readonly clickhouse: 'clickhouseUrl';
}

export const URL_FIELDS: UrlFields = { nats: 'natsUrl', postgres: 'databaseUrl', clickhouse: 'clickhouseUrl' };

/** One URL, with credentials, for each server that was asked for. */
export type EmbeddedUrls<Name extends EmbeddedServerName> = { readonly [Server in Name as UrlFields[Server]]: string };

/** Where objects go. */
export type ObjectStoreSettings =
  | { readonly kind: 'filesystem'; readonly root: string }
  | {
      readonly kind: 's3';
      readonly endpoint: string;
      readonly region: string;
      readonly bucket: string;
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
      readonly forcePathStyle: boolean;
    };

const given = z.string().trim().min(1);
const urlOf = (...protocols: readonly string[]): z.ZodType<string> =>
  given.refine((text) => URL.canParse(text) && protocols.includes(new URL(text).protocol), { message: `must be a URL that begins with ${protocols.join('// or ')}//` });

const externalSettings = z.object({
  NATS_URL: urlOf('nats:', 'tls:').optional(),
  DATABASE_URL: urlOf('postgres:', 'postgresql:').optional(),
  CLICKHOUSE_URL: urlOf('http:', 'https:').optional(),
  S3_ENDPOINT: urlOf('http:', 'https:').optional(),
  S3_REGION: given.default('us-east-1'),
  S3_BUCKET: given.optional(),
  S3_ACCESS_KEY_ID: given.optional(),
  S3_SECRET_ACCESS_KEY: given.optional(),
  S3_FORCE_PATH_STYLE: z.stringbool().default(true),
}).superRefine((settings, context) => {
  if (settings.S3_ENDPOINT === undefined) return;
  for (const name of ['S3_BUCKET', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const) {
    if (settings[name] === undefined) context.addIssue({ code: 'custom', path: [name], message: 'is needed together with S3_ENDPOINT' });
  }
});

export interface ExternalServers {
  readonly urls: Readonly<Record<EmbeddedServerName, string | undefined>>;
  readonly s3: Extract<ObjectStoreSettings, { kind: 's3' }> | undefined;
}

/** Which servers the environment replaces. Throws with the variable's name when one is malformed; values are not repeated. */
export function readExternalServers(env: NodeJS.ProcessEnv): ExternalServers {
  const names = Object.keys(externalSettings.shape);
  const parsed = externalSettings.safeParse(Object.fromEntries(names.map((name) => [name, env[name] === '' ? undefined : env[name]])));
  if (!parsed.success) {
    throw new Error(parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`).join('; ') + '. Correct it or unset it.');
  }
  const found = parsed.data;
  const s3 = found.S3_ENDPOINT === undefined ? undefined : {
    kind: 's3' as const, endpoint: found.S3_ENDPOINT, region: found.S3_REGION, bucket: found.S3_BUCKET ?? '',
    accessKeyId: found.S3_ACCESS_KEY_ID ?? '', secretAccessKey: found.S3_SECRET_ACCESS_KEY ?? '', forcePathStyle: found.S3_FORCE_PATH_STYLE,
  };
  return { urls: { nats: found.NATS_URL, postgres: found.DATABASE_URL, clickhouse: found.CLICKHOUSE_URL }, s3 };
}
