import type { EventOf, organisationCreatedV1, OrganisationCreatedV1, organisationResumedV1, organisationSuspendedV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';
import { ROOT_ORGANISATION_ID } from './refs.js';

export type OrganisationEvent = EventOf<typeof organisationCreatedV1> | EventOf<typeof organisationSuspendedV1> | EventOf<typeof organisationResumedV1>;
export type OrganisationCommand = ({ readonly kind: 'create' } & OrganisationCreatedV1) | { readonly kind: 'suspend' | 'resume'; readonly reason: string };
export type OrganisationState = (OrganisationCreatedV1 & { readonly suspended: boolean }) | null;

/** Creating the same organisation again changes nothing; the same id under another name is refused. Suspending and resuming follow each other; the same again changes nothing. */
export const organisationDecider: Decider<OrganisationState, OrganisationCommand, OrganisationEvent> = {
  initialState: null,
  decide(command, state) {
    if (command.kind === 'create') {
      const { organisationId, name } = command;
      if (state === null) return accept({ type: 'organisation.created.v1', data: { organisationId, name } });
      if (state.name === name) return accept();
      return refuse({ code: 'already_exists', message: `Organisation ${organisationId} exists under another name.`, param: 'name' });
    }
    if (state === null) return refuse({ code: 'not_found', message: 'No such organisation; list them to see their ids.' });
    const { organisationId } = state;
    if (organisationId === ROOT_ORGANISATION_ID) return refuse({ code: 'invalid_value', message: 'The organisation of the operator cannot be suspended.', param: 'organisation_id' });
    const suspends = command.kind === 'suspend';
    if (state.suspended === suspends) return accept();
    return accept({ type: suspends ? 'organisation.suspended.v1' : 'organisation.resumed.v1', data: { organisationId, reason: command.reason } });
  },
  evolve(state, event) {
    if (event.type === 'organisation.created.v1') return { ...event.data, suspended: false };
    return state === null ? null : { ...state, suspended: event.type === 'organisation.suspended.v1' };
  },
};
