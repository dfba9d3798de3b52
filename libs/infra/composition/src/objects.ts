import { openObjectStore } from '@penstock/infra-objects';
import { z } from 'zod';
import { readSettings, type Environment } from './settings.js';

const objectsConfig = z.object({
  /** A folder that every service of one machine shares; used unless S3 is named. */
  OBJECTS_DIR: z.string().optional(),
  S3_ENDPOINT: z.string().optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_BUCKET: z.string().default('penstock'),
  S3_ACCESS_KEY_ID: z.string().optional(),
  S3_SECRET_ACCESS_KEY: z.string().optional(),
  S3_FORCE_PATH_STYLE: z.stringbool().default(true),
});

/** The object store that the environment names. Throws an error that says which variables are missing. */
export function openObjects(environment: Environment): ReturnType<typeof openObjectStore> {
  const config = readSettings(objectsConfig, environment);
  if (config.S3_ENDPOINT === undefined) {
    if (config.OBJECTS_DIR === undefined) throw new Error('Set OBJECTS_DIR to a shared folder, or S3_ENDPOINT with S3_BUCKET, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.');
    return openObjectStore({ kind: 'filesystem', root: config.OBJECTS_DIR });
  }
  const { S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = config;
  if (S3_ACCESS_KEY_ID === undefined || S3_SECRET_ACCESS_KEY === undefined) throw new Error('S3_ENDPOINT needs S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.');
  return openObjectStore({ kind: 's3', endpoint: config.S3_ENDPOINT, region: config.S3_REGION, bucket: config.S3_BUCKET, accessKeyId: S3_ACCESS_KEY_ID, secretAccessKey: S3_SECRET_ACCESS_KEY, forcePathStyle: config.S3_FORCE_PATH_STYLE });
}
