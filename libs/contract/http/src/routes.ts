import { batchObject, fileObject } from '@penstock/contract-commands';
import { z } from 'zod';
import * as admin from './admin.js';
import { batchList, batchListQuery, createBatchRequest, fileDeleted, fileList, fileListQuery } from './batches.js';
import { chatCompletion, chatCompletionRequest } from './chat.js';
import * as commitments from './commitments.js';
import { completionRequest, textCompletion } from './completions.js';
import { embeddingList, embeddingRequest } from './embeddings.js';
import { ownLimits, requestExplanation } from './explain.js';
import { deployRequest, deployResponse, modelDeleted, modelList, modelObject } from './models.js';
import { moderationAnswer, moderationRequest } from './moderations.js';
import { classifyAnswer, classifyRequest, rerankAnswer, rerankRequest, scoreAnswer, scoreRequest } from './rerank.js';
import { responseDeleted, responseInputTokens, responseItemList, responseItemsQuery, responseObject, responseRequest } from './responses.js';
import { detokenizeAnswer, detokenizeRequest, tokenizeAnswer, tokenizeRequest } from './tokenize.js';
import { asyncResponseBody } from './stored-answers.js';
import { setTrafficSplitRequest, trafficSplitBody, trafficSplitList, trafficSplitRemoved } from './traffic.js';
import { inferRequest, inferResponse, tensorModel, tensorServer } from './tensors.js';
import { completeUploadRequest, createUploadRequest, uploadObject, uploadPart } from './uploads.js';
import { usagePage, usageQuery } from './usage.js';

/** Who may call a route. `inference` and `admin` are kinds of API key; `either` takes both; `none` is open to everybody. */
export type RouteAccess = 'inference' | 'admin' | 'either' | 'none';

export interface RouteContract {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** As in OpenAPI: `/v1/models/{model}`. */
  readonly path: string;
  /** Other paths that lead to the same, for clients that use them. */
  readonly aliases?: readonly string[];
  readonly summary: string;
  readonly access: RouteAccess;
  /** The request is worked on by a replica of the model that it names. */
  readonly callsModel?: true;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  /** `multipart` bodies are described in words; `tensor` is JSON, or a JSON head with binary tensors behind it, whatever its content type; `json` is the default where `body` is set. */
  readonly bodyKind?: 'json' | 'multipart' | 'tensor';
  readonly status: number;
  /** `empty` says everything by its status. */
  readonly response: z.ZodType | 'binary' | 'empty';
}

/** Every public route: OpenAPI is generated from it, and tests send each one bad input. */
export const routes: readonly RouteContract[] = [
  { method: 'POST', path: '/v1/chat/completions', summary: 'Answer a conversation, streamed or not.', access: 'inference', callsModel: true, body: chatCompletionRequest, status: 200, response: chatCompletion },
  { method: 'POST', path: '/v1/completions', summary: 'Go on from a prompt, streamed or not.', access: 'inference', callsModel: true, body: completionRequest, status: 200, response: textCompletion },
  { method: 'POST', path: '/v1/responses', summary: 'Answer in the form of the Responses API, streamed or not.', access: 'inference', callsModel: true, body: responseRequest, status: 200, response: responseObject },
  { method: 'POST', path: '/v1/responses/input_tokens', summary: 'How many tokens the input of a response has.', access: 'inference', callsModel: true, body: responseRequest, status: 200, response: responseInputTokens },
  { method: 'GET', path: '/v1/responses/{response_id}', summary: 'A response that was stored.', access: 'inference', status: 200, response: responseObject },
  { method: 'DELETE', path: '/v1/responses/{response_id}', summary: 'Delete a stored response.', access: 'inference', status: 200, response: responseDeleted },
  { method: 'GET', path: '/v1/responses/{response_id}/input_items', summary: 'What a stored response was asked.', access: 'inference', query: responseItemsQuery, status: 200, response: responseItemList },
  { method: 'POST', path: '/v1/responses/{response_id}/cancel', summary: 'Refused: only answers made in the background could be cancelled, and none are.', access: 'inference', status: 200, response: responseObject },
  { method: 'POST', path: '/v1/embeddings', summary: 'Vectors of texts or token lists.', access: 'inference', callsModel: true, body: embeddingRequest, status: 200, response: embeddingList },
  { method: 'POST', path: '/v1/rerank', aliases: ['/v2/rerank'], summary: 'Order documents by how well they answer a query.', access: 'inference', callsModel: true, body: rerankRequest, status: 200, response: rerankAnswer },
  { method: 'POST', path: '/v1/score', summary: 'How near texts are to each other.', access: 'inference', callsModel: true, body: scoreRequest, status: 200, response: scoreAnswer },
  { method: 'POST', path: '/v1/classify', summary: 'Classes of texts, by a model that classifies.', access: 'inference', callsModel: true, body: classifyRequest, status: 200, response: classifyAnswer },
  { method: 'POST', path: '/v1/moderations', summary: 'Judge texts by the categories of OpenAI, by a model that classifies.', access: 'inference', callsModel: true, body: moderationRequest, status: 200, response: moderationAnswer },
  { method: 'POST', path: '/v1/tokenize', summary: 'Token ids of a prompt or of messages.', access: 'inference', callsModel: true, body: tokenizeRequest, status: 200, response: tokenizeAnswer },
  { method: 'POST', path: '/v1/detokenize', summary: 'The text of token ids.', access: 'inference', callsModel: true, body: detokenizeRequest, status: 200, response: detokenizeAnswer },
  { method: 'GET', path: '/v1/models', summary: 'Models the key may call.', access: 'either', status: 200, response: modelList },
  { method: 'GET', path: '/v1/models/{model}', summary: 'One model.', access: 'either', status: 200, response: modelObject },
  { method: 'DELETE', path: '/v1/models/{model}', summary: 'Take a model out of service.', access: 'admin', status: 200, response: modelDeleted },
  { method: 'POST', path: '/v1/models/deploy', summary: 'Register a model from an artifact and deploy an endpoint for it.', access: 'admin', body: deployRequest, status: 202, response: deployResponse },
  { method: 'POST', path: '/v1/files', summary: 'Upload a file (multipart: file, purpose).', access: 'inference', bodyKind: 'multipart', status: 200, response: fileObject },
  { method: 'GET', path: '/v1/files', summary: 'Files of the organisation.', access: 'inference', query: fileListQuery, status: 200, response: fileList },
  { method: 'GET', path: '/v1/files/{file_id}', summary: 'One file.', access: 'inference', status: 200, response: fileObject },
  { method: 'DELETE', path: '/v1/files/{file_id}', summary: 'Delete a file.', access: 'inference', status: 200, response: fileDeleted },
  { method: 'GET', path: '/v1/files/{file_id}/content', summary: 'The bytes of a file.', access: 'inference', status: 200, response: 'binary' },
  { method: 'POST', path: '/v1/uploads', summary: 'Begin a file that is sent in parts.', access: 'inference', body: createUploadRequest, status: 200, response: uploadObject },
  { method: 'POST', path: '/v1/uploads/{upload_id}/parts', summary: 'Add a part to an upload (multipart: data).', access: 'inference', bodyKind: 'multipart', status: 200, response: uploadPart },
  { method: 'POST', path: '/v1/uploads/{upload_id}/complete', summary: 'Make a file of the parts of an upload.', access: 'inference', body: completeUploadRequest, status: 200, response: uploadObject },
  { method: 'POST', path: '/v1/uploads/{upload_id}/cancel', summary: 'Give an upload up.', access: 'inference', status: 200, response: uploadObject },
  { method: 'POST', path: '/v1/batches', summary: 'Start a batch job.', access: 'inference', body: createBatchRequest, status: 200, response: batchObject },
  { method: 'GET', path: '/v1/batches', summary: 'Batch jobs of the organisation.', access: 'inference', query: batchListQuery, status: 200, response: batchList },
  { method: 'GET', path: '/v1/batches/{batch_id}', summary: 'One batch job.', access: 'inference', status: 200, response: batchObject },
  { method: 'POST', path: '/v1/batches/{batch_id}/cancel', summary: 'Cancel a batch job.', access: 'inference', status: 200, response: batchObject },
  { method: 'GET', path: '/v1/async/{async_id}', summary: 'A request that was sent with `Prefer: respond-async`: its state, and its answer once it is there; as `text/event-stream` the answer as it comes.', access: 'inference', status: 200, response: asyncResponseBody },
  { method: 'GET', path: '/v1/limits', summary: 'The limits that the calling key is under: how much of each is used, and when it may go on.', access: 'either', status: 200, response: ownLimits },
  { method: 'GET', path: '/v1/requests/{request_id}', summary: 'What became of a request and why: the limit it met, how long it waited and for what, which replica answered.', access: 'either', status: 200, response: requestExplanation },
  { method: 'GET', path: '/v1/organization/usage/completions', summary: 'Token usage in time buckets.', access: 'either', query: usageQuery, status: 200, response: usagePage },
  { method: 'GET', path: '/docs', summary: 'This API as a page to read.', access: 'none', status: 200, response: 'binary' },
  { method: 'GET', path: '/docs/openapi.json', summary: 'This API as an OpenAPI document.', access: 'none', status: 200, response: z.looseObject({ openapi: z.string() }) },
  { method: 'GET', path: '/v2', summary: 'Open Inference Protocol: the server and the extensions it knows.', access: 'either', status: 200, response: tensorServer },
  { method: 'GET', path: '/v2/health/live', summary: 'Open Inference Protocol: the server runs.', access: 'either', status: 200, response: 'empty' },
  { method: 'GET', path: '/v2/health/ready', summary: 'Open Inference Protocol: the server takes requests.', access: 'either', status: 200, response: 'empty' },
  { method: 'GET', path: '/v2/models/{model_name}', summary: 'Open Inference Protocol: the tensors a model takes and gives.', access: 'either', status: 200, response: tensorModel },
  { method: 'GET', path: '/v2/models/{model_name}/ready', summary: 'Open Inference Protocol: a replica of the model answered a real inference and takes requests.', access: 'either', status: 200, response: 'empty' },
  { method: 'POST', path: '/v2/models/{model_name}/infer', summary: 'Open Inference Protocol: one inference, with tensors in JSON or binary.', access: 'inference', body: inferRequest, bodyKind: 'tensor', status: 200, response: inferResponse },
  { method: 'GET', path: '/v2/models/{model_name}/versions/{model_version}', summary: 'Open Inference Protocol: one version of a model.', access: 'either', status: 200, response: tensorModel },
  { method: 'GET', path: '/v2/models/{model_name}/versions/{model_version}/ready', summary: 'Open Inference Protocol: whether a version is ready.', access: 'either', status: 200, response: 'empty' },
  { method: 'POST', path: '/v2/models/{model_name}/versions/{model_version}/infer', summary: 'Open Inference Protocol: one inference on a version.', access: 'inference', body: inferRequest, bodyKind: 'tensor', status: 200, response: inferResponse },
  { method: 'POST', path: '/admin/v1/organisations', summary: 'Create an organisation with a default project.', access: 'admin', body: admin.createOrganisationRequest, status: 201, response: admin.organisationBody },
  { method: 'POST', path: '/admin/v1/organisations/{organisation_id}/suspend', summary: 'Stop every key of an organisation until it is resumed.', access: 'admin', body: admin.suspensionRequest, status: 200, response: admin.organisationBody },
  { method: 'POST', path: '/admin/v1/organisations/{organisation_id}/resume', summary: 'Let the keys of a suspended organisation work again.', access: 'admin', body: admin.suspensionRequest, status: 200, response: admin.organisationBody },
  { method: 'GET', path: '/admin/v1/organisations', summary: 'Organisations.', access: 'admin', status: 200, response: admin.organisationList },
  { method: 'POST', path: '/admin/v1/projects', summary: 'Create a project.', access: 'admin', body: admin.createProjectRequest, status: 201, response: admin.projectBody },
  { method: 'GET', path: '/admin/v1/projects', summary: 'Projects.', access: 'admin', status: 200, response: admin.projectList },
  { method: 'POST', path: '/admin/v1/keys', summary: 'Create an API key; it is shown this once.', access: 'admin', body: admin.createKeyRequest, status: 201, response: admin.createdKeyBody },
  { method: 'GET', path: '/admin/v1/keys', summary: 'API keys, redacted.', access: 'admin', status: 200, response: admin.keyList },
  { method: 'DELETE', path: '/admin/v1/keys/{key_id}', summary: 'Revoke an API key.', access: 'admin', status: 200, response: admin.keyBody },
  { method: 'POST', path: '/admin/v1/keys/{key_id}/rotate', summary: 'Create a key in place of another, which works a while longer; the new one is shown this once.', access: 'admin', body: admin.rotateKeyRequest, status: 201, response: admin.createdKeyBody },
  { method: 'POST', path: '/admin/v1/service-accounts', summary: 'Create a service account.', access: 'admin', body: admin.createServiceAccountRequest, status: 201, response: admin.serviceAccountBody },
  { method: 'GET', path: '/admin/v1/service-accounts', summary: 'Service accounts.', access: 'admin', status: 200, response: admin.serviceAccountList },
  { method: 'DELETE', path: '/admin/v1/service-accounts/{service_account_id}', summary: 'Disable a service account and every key of it.', access: 'admin', status: 200, response: admin.serviceAccountBody },
  { method: 'POST', path: '/admin/v1/limits', summary: 'Set the limits of an organisation, a project or a key, for all models or for one.', access: 'admin', body: admin.setLimitsRequest, status: 200, response: admin.limitsBody },
  { method: 'GET', path: '/admin/v1/limits', summary: 'Limits that are set.', access: 'admin', query: admin.limitsQuery, status: 200, response: admin.limitsList },
  { method: 'POST', path: '/admin/v1/traffic-splits', summary: 'Spread the requests for a name over endpoints by weight.', access: 'admin', body: setTrafficSplitRequest, status: 200, response: trafficSplitBody },
  { method: 'GET', path: '/admin/v1/traffic-splits', summary: 'Names that several endpoints share.', access: 'admin', status: 200, response: trafficSplitList },
  { method: 'DELETE', path: '/admin/v1/traffic-splits/{split_id}', summary: 'Take the split of a name away.', access: 'admin', status: 200, response: trafficSplitRemoved },
  { method: 'GET', path: '/admin/v1/model-versions', summary: 'Model versions with their status.', access: 'admin', status: 200, response: admin.modelVersionList },
  { method: 'GET', path: '/admin/v1/endpoints', summary: 'Endpoints.', access: 'admin', status: 200, response: admin.endpointList },
  { method: 'DELETE', path: '/admin/v1/endpoints/{endpoint_id}', summary: 'Retire an endpoint.', access: 'admin', status: 200, response: z.object({ endpoint_id: z.string() }) },
  { method: 'GET', path: '/admin/v1/fleet', summary: 'Nodes and replicas.', access: 'admin', status: 200, response: admin.fleetBody },
  { method: 'POST', path: '/admin/v1/nodes/{node_id}/cordon', summary: 'Close a node to new replicas.', access: 'admin', body: admin.nodeOperationRequest, status: 200, response: admin.nodeOperationBody },
  { method: 'POST', path: '/admin/v1/nodes/{node_id}/uncordon', summary: 'Open a node to new replicas again, and end its drain.', access: 'admin', body: admin.nodeOperationRequest, status: 200, response: admin.nodeOperationBody },
  { method: 'POST', path: '/admin/v1/nodes/{node_id}/drain', summary: 'Empty a node: each of its replicas drains once another one is ready in its place.', access: 'admin', body: admin.nodeOperationRequest, status: 200, response: admin.nodeOperationBody },
  { method: 'POST', path: '/admin/v1/nodes/{node_id}/reclaim', summary: 'Say that the owner of a node takes it back soon, so that its replicas move before.', access: 'admin', body: admin.reclaimRequest, status: 200, response: admin.nodeOperationBody },
  { method: 'POST', path: '/admin/v1/reservations', summary: 'Set capacity aside for a service level, or be told what would fit.', access: 'admin', body: commitments.createReservationRequest, status: 201, response: commitments.reservationBody },
  { method: 'GET', path: '/admin/v1/reservations', summary: 'Reservations.', access: 'admin', query: commitments.reservationsQuery, status: 200, response: commitments.reservationList },
  { method: 'DELETE', path: '/admin/v1/reservations/{reservation_id}', summary: 'Release a reservation.', access: 'admin', status: 200, response: commitments.reservationReleased },
  { method: 'POST', path: '/admin/v1/plans', summary: 'A dry run of a deployment or of a change of the fleet: what fits, moves, is refused and costs. Changes nothing.', access: 'admin', body: commitments.createPlanRequest, status: 200, response: commitments.planBody },
  { method: 'GET', path: '/admin/v1/events', summary: 'Events of the log, by stream or aggregate; `follow=true` streams them.', access: 'admin', query: admin.eventsQuery, status: 200, response: admin.eventList },
  { method: 'GET', path: '/admin/v1/progress', summary: 'The start of an endpoint as it goes on, as `text/event-stream`: phases, bytes pulled, refusals.', access: 'admin', query: admin.progressQuery, status: 200, response: admin.progressBody },
  { method: 'POST', path: '/admin/v1/replay/verify', summary: 'Rebuild every projection from the first event and compare.', access: 'admin', body: admin.verifyRequest, status: 200, response: admin.verifyBody },
  { method: 'GET', path: '/admin/v1/dead-letters', summary: 'Events that could not be handled.', access: 'admin', status: 200, response: admin.deadLetterList },
  { method: 'POST', path: '/admin/v1/dead-letters/redrive', summary: 'Hand dead letters to their consumer again.', access: 'admin', body: admin.redriveRequest, status: 200, response: admin.redriveBody },
];
