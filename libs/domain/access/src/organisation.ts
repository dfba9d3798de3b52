import type { EventOf, organisationCreatedV1, OrganisationCreatedV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';

export type OrganisationEvent = EventOf<typeof organisationCreatedV1>;
export type OrganisationCommand = { readonly kind: 'create' } & OrganisationCreatedV1;
export type OrganisationState = OrganisationCreatedV1 | null;

/** Creating the same organisation again changes nothing; the same id under another name is refused. */
export const organisationDecider: Decider<OrganisationState, OrganisationCommand, OrganisationEvent> = {
  initialState: null,
  decide({ organisationId, name }, state) {
    if (state === null) return accept({ type: 'organisation.created.v1', data: { organisationId, name } });
    if (state.name === name) return accept();
    return refuse({ code: 'already_exists', message: `Organisation ${organisationId} exists under another name.`, param: 'name' });
  },
  evolve: (_state, event) => event.data,
};
