import { Args, Flags } from '@oclif/core';
import { createdKeyBody, keyBody, keyList, keyScopes } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import { table } from '../terminal/table.js';

const date = (seconds: number | null): string => (seconds === null ? '-' : new Date(seconds * 1_000).toISOString());

export class KeysList extends ApiCommand {
  static override summary = 'List API keys, redacted.';

  async run(): Promise<unknown> {
    const { flags } = await this.parse(KeysList);
    const { data } = await this.clientFor(flags).call('GET', '/admin/v1/keys', keyList);
    this.log(table(['ID', 'NAME', 'KIND', 'KEY', 'PROJECT', 'CREATED', 'LAST USED', 'EXPIRES', 'REVOKED'], data.map((key) => [key.id, key.name, key.kind, key.redacted, key.project_id, date(key.created_at), date(key.last_used_at), date(key.expires_at), date(key.revoked_at)])));
    return data;
  }
}

export class KeysCreate extends ApiCommand {
  static override summary = 'Create an API key. It is shown this once and cannot be shown again.';
  static override args = { name: Args.string({ required: true, description: 'a name to recognise the key by' }) };
  static override flags = {
    kind: Flags.string({ options: ['inference', 'admin'], default: 'inference', description: 'what the key opens' }),
    project: Flags.string({ description: 'project id; the default project when left out' }),
    model: Flags.string({ multiple: true, description: 'a model the key may call; every model when left out' }),
    expires: Flags.string({ description: 'ISO 8601 instant at which the key stops working' }),
    scope: Flags.string({ multiple: true, options: [...keyScopes], description: 'what the key may do; everything of its kind when left out' }),
    'service-account': Flags.string({ description: 'service account that the key is for' }),
  };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(KeysCreate);
    const body = { name: args.name, kind: flags.kind, models: flags.model ?? null, expires_at: flags.expires ?? null, scopes: flags.scope ?? null, service_account_id: flags['service-account'] ?? null, ...(flags.project === undefined ? {} : { project_id: flags.project }) };
    const created = await this.clientFor(flags).call('POST', '/admin/v1/keys', createdKeyBody, body);
    this.log(created.key);
    this.logToStderr(`Key ${created.id} (${created.name}) was created. Store it now: it is not shown again.`);
    return created;
  }
}

export class KeysRevoke extends ApiCommand {
  static override summary = 'Revoke an API key for good.';
  static override args = { id: Args.string({ required: true, description: 'id of the key, as `keys list` shows it' }) };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(KeysRevoke);
    const revoked = await this.clientFor(flags).call('DELETE', `/admin/v1/keys/${encodeURIComponent(args.id)}`, keyBody);
    this.log(`Key ${revoked.id} (${revoked.name}) no longer works.`);
    return revoked;
  }
}

export class KeysRotate extends ApiCommand {
  static override summary = 'Create a key in place of another. The old one works until the overlap ends; the new one is shown this once.';
  static override args = { id: Args.string({ required: true, description: 'id of the key, as `keys list` shows it' }) };
  static override flags = {
    overlap: Flags.integer({ default: 86_400, min: 0, description: 'seconds for which the old key still works' }),
    expires: Flags.string({ description: 'ISO 8601 instant at which the new key stops working' }),
  };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(KeysRotate);
    const created = await this.clientFor(flags).call('POST', `/admin/v1/keys/${encodeURIComponent(args.id)}/rotate`, createdKeyBody, { overlap_seconds: flags.overlap, expires_at: flags.expires ?? null });
    this.log(created.key);
    this.logToStderr(`Key ${created.id} takes the place of ${args.id}, which works for ${flags.overlap} s more. Store the new one now: it is not shown again.`);
    return created;
  }
}
