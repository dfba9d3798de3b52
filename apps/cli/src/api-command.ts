import { Command, Flags } from '@oclif/core';
import { ApiClient, ApiError } from './client/api-client.js';
import { findTarget } from './client/find-target.js';

/** Exit codes that scripts may rely on. */
export const EXIT = { failed: 1, usage: 2, unreachable: 3, refused: 4 } as const;

/** A command that talks to a running installation. Every one has `--json`. */
export abstract class ApiCommand extends Command {
  static override enableJsonFlag = true;
  static override baseFlags = {
    url: Flags.string({ description: 'base URL of the installation', helpGroup: 'GLOBAL' }),
    'admin-key': Flags.string({ description: 'admin API key', helpGroup: 'GLOBAL' }),
  };

  /** The client for the installation that flags, environment or the last `up` name. */
  protected clientFor(flags: { readonly url?: string | undefined; readonly 'admin-key'?: string | undefined }): ApiClient {
    return new ApiClient(findTarget(flags));
  }

  protected override catch(error: Error & { exitCode?: number }): Promise<unknown> {
    if (!(error instanceof ApiError)) return super.catch(error);
    const request = error.requestId === undefined ? '' : ` (request ${error.requestId})`;
    if (this.jsonEnabled()) {
      this.logJson({ error: { code: error.code, message: error.message, status: error.status, request_id: error.requestId ?? null } });
      return Promise.resolve(this.exit(error.status === 0 ? EXIT.unreachable : EXIT.refused));
    }
    return Promise.resolve(this.error(`${error.message}${request}`, { code: error.code, exit: error.status === 0 ? EXIT.unreachable : EXIT.refused }));
  }
}
