import type { EventOf, serviceAccountCreatedV1, ServiceAccountCreatedV1, serviceAccountDisabledV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';

export type ServiceAccountEvent = EventOf<typeof serviceAccountCreatedV1> | EventOf<typeof serviceAccountDisabledV1>;
export type ServiceAccountCommand = ({ readonly kind: 'create' } & ServiceAccountCreatedV1) | { readonly kind: 'disable'; readonly reason: string };
export type ServiceAccountState = (ServiceAccountCreatedV1 & { readonly disabled: boolean }) | null;

/** An account is created once and disabled for good; disabling again changes nothing. */
export const serviceAccountDecider: Decider<ServiceAccountState, ServiceAccountCommand, ServiceAccountEvent> = {
  initialState: null,
  decide(command, state) {
    if (command.kind === 'create') {
      const { kind: _kind, ...data } = command;
      return state === null ? accept({ type: 'service-account.created.v1', data }) : refuse({ code: 'already_exists', message: `Service account ${data.serviceAccountId} exists already.` });
    }
    if (state === null) return refuse({ code: 'not_found', message: 'No such service account; list them to see their ids.' });
    return state.disabled ? accept() : accept({ type: 'service-account.disabled.v1', data: { serviceAccountId: state.serviceAccountId, reason: command.reason } });
  },
  evolve(state, event) {
    if (event.type === 'service-account.created.v1') return { ...event.data, disabled: false };
    return state === null ? null : { ...state, disabled: true };
  },
};
