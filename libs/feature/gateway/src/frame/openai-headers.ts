import type { DirectCall } from '../http/route-call.js';

/** The version of OpenAI's API whose shapes are spoken here; the only one that it has had. */
const API_VERSION = '2020-10-01';

/** What answers of OpenAI's API carry beside their request id: whose request it was. `openai-processing-ms` joins them with the answer's head. */
export function nameCaller({ reply, principal }: DirectCall): void {
  reply.header('openai-version', API_VERSION);
  reply.header('openai-organization', principal.organisationId);
  reply.header('openai-project', principal.projectId);
}
