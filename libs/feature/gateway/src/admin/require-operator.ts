import { isOperator, type Principal } from '@penstock/domain-access';
import { RequestFault } from '../http/request-fault.js';

/** For what concerns the whole installation. */
export function requireOperator(principal: Principal): void {
  if (!isOperator(principal)) throw new RequestFault({ code: 'insufficient_permissions', message: 'This route concerns the whole installation and needs an admin key of its operator.' });
}

/** Whether the principal may see what belongs to an organisation; null stands for what belongs to everybody. */
export function maySee(principal: Principal, organisationId: string | null): boolean {
  return organisationId === null || organisationId === principal.organisationId || isOperator(principal);
}

export function unixSeconds(ms: number): number {
  return Math.floor(ms / 1_000);
}
