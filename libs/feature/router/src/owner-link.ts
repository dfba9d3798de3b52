import type { CommandContract, CommandReply } from '@penstock/contract-commands';
import { ServiceUnavailableError, type CommandClient, type CommandOptions } from '@penstock/kernel';
import type { z } from 'zod';
import { addressedTo } from './instance-address.js';
import type { RouterMembers } from './router-members.js';

/** Commands that may wait for another instance at once. */
export const FORWARDS_MAX = 20_000;
/** An owner that is gone names the next one; more than this many in a row is no luck but a fault. */
const OWNERS_TRIED_MAX = 3;

/** What came of a command for the owner of an endpoint. */
export type Forwarded<Value> =
  | { readonly kind: 'here' }
  | { readonly kind: 'nobody' }
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'replied'; readonly reply: CommandReply<Value> };

/** Sends commands on to the instance that owns their endpoint. */
export class OwnerLink {
  private underWay = 0;

  constructor(private readonly commands: CommandClient, private readonly members: RouterMembers) {}

  /**
   * `here` when this instance is the owner, also after the owner turned out to be gone; `nobody` when it leaves and is the last one.
   * Throws {@link ServiceUnavailableError} when the owner is there and does not answer in time, or the signal of the options ended the wait.
   */
  async forward<Request extends z.ZodType, Reply extends z.ZodType>(contract: CommandContract<Request, Reply>, endpointId: string, request: z.input<Request>, options: CommandOptions): Promise<Forwarded<z.output<Reply>>> {
    if (this.underWay >= FORWARDS_MAX) return { kind: 'overloaded' };
    this.underWay += 1;
    try {
      for (let tried = 0; tried < OWNERS_TRIED_MAX; tried += 1) {
        const owner = this.members.owner(endpointId);
        if (owner === undefined) return { kind: 'nobody' };
        if (owner === this.members.instanceId) return { kind: 'here' };
        try {
          return { kind: 'replied', reply: await this.commands.send(addressedTo(contract, owner), request, options) };
        } catch (error) {
          if (!(error instanceof ServiceUnavailableError) || error.reason !== 'no-responders') throw error;
          this.members.lose(owner);
        }
      }
      return { kind: this.members.isLeaving ? 'nobody' : 'here' };
    } finally {
      this.underWay -= 1;
    }
  }
}
