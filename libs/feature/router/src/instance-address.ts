import type { CommandContract } from '@penstock/contract-commands';
import type { z } from 'zod';

const addressed = new WeakMap<CommandContract, Map<string, CommandContract>>();

/** Instances remembered per command; routers come and go. */
const INSTANCES_MAX = 1_000;

/** The same command on the subject that only one router instance serves: `cmd.router.admit.<instanceId>`. */
export function addressedTo<Request extends z.ZodType, Reply extends z.ZodType>(contract: CommandContract<Request, Reply>, instanceId: string): CommandContract<Request, Reply> {
  let byInstance = addressed.get(contract);
  if (byInstance === undefined || byInstance.size >= INSTANCES_MAX) addressed.set(contract, (byInstance = new Map()));
  let found = byInstance.get(instanceId);
  if (found === undefined) byInstance.set(instanceId, (found = { ...contract, subject: `${contract.subject}.${instanceId}` }));
  // The map of one contract holds only copies of that contract, so the types are those of `contract`.
  return found as CommandContract<Request, Reply>;
}
