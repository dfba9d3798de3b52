import type { EventOf, projectCreatedV1, ProjectCreatedV1 } from '@penstock/contract-events';
import { accept, refuse, type Decider } from '@penstock/kernel';

export type ProjectEvent = EventOf<typeof projectCreatedV1>;
export type ProjectCommand = { readonly kind: 'create' } & ProjectCreatedV1;
export type ProjectState = ProjectCreatedV1 | null;

/** Creating the same project again changes nothing; a project never moves to another organisation. */
export const projectDecider: Decider<ProjectState, ProjectCommand, ProjectEvent> = {
  initialState: null,
  decide({ projectId, organisationId, name }, state) {
    if (state === null) return accept({ type: 'project.created.v1', data: { projectId, organisationId, name } });
    if (state.organisationId === organisationId && state.name === name) return accept();
    return refuse({ code: 'already_exists', message: `Project ${projectId} exists with other settings.`, param: 'name' });
  },
  evolve: (_state, event) => event.data,
};
