import { contentPartKinds, responseFormatKinds, toolCallKinds, toolKinds, type ApiFault, type ChatCompletionRequest } from '@penstock/contract-http';
import { isRecord } from './json-fields.js';
import { faultOfIssues } from './request-fault.js';

type Kinds = typeof contentPartKinds;
type Path = readonly (string | number)[];

/** What is wrong with the parts of messages, the tools and their calls, and the form of the answer; undefined when nothing is. */
export function kindFault({ messages, tools, response_format: format }: ChatCompletionRequest, body: unknown): ApiFault | undefined {
  for (const [index, message] of messages.entries()) {
    const fault = listFault(message['content'], contentPartKinds, ['messages', index, 'content'], body) ?? listFault(message['tool_calls'], toolCallKinds, ['messages', index, 'tool_calls'], body);
    if (fault !== undefined) return fault;
  }
  return listFault(tools, toolKinds, ['tools'], body) ?? itemFault(format, responseFormatKinds, ['response_format'], body);
}

function listFault(list: unknown, kinds: Kinds, path: Path, body: unknown): ApiFault | undefined {
  if (!Array.isArray(list)) return undefined;
  for (const [index, item] of (list as unknown[]).entries()) {
    const fault = itemFault(item, kinds, [...path, index], body);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function itemFault(item: unknown, kinds: Kinds, path: Path, body: unknown): ApiFault | undefined {
  const type = isRecord(item) ? item['type'] : undefined;
  const kind = typeof type === 'string' && Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  const parsed = kind?.safeParse(item);
  return parsed === undefined || parsed.success ? undefined : faultOfIssues(parsed.error.issues.map((issue) => ({ ...issue, path: [...path, ...issue.path] })), body);
}
