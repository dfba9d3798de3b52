import { HASHED_CHARACTERS_MAX, promptBlocks, textKey, type PromptTrail } from '@penstock/domain-routing';
import { estimatePromptTokens, isRecord, type JsonDocument } from '@penstock/domain-serving';
import type { IncomingHttpHeaders } from 'node:http';

/** Names the conversation that a request belongs to, for clients whose body has no field for it. */
export const SESSION_HEADER = 'x-session-id';
/** As long as a session may call itself. */
const SESSION_CHARACTERS_MAX = 512;

/** The member of a body that holds the prompt. */
export type PromptMember = 'messages' | 'prompt';

/** Who sends a request, in the caller's own words, most telling first. */
export interface CallerWords {
  readonly session: string | undefined;
  readonly user: string | undefined;
}

/** `x-session-id` and `prompt_cache_key` name a session; `user` and `safety_identifier` a person. */
export function callerWords(headers: IncomingHttpHeaders, body: unknown): CallerWords {
  const header = headers[SESSION_HEADER];
  const field = (name: string): string | undefined => (isRecord(body) ? words(body[name]) : undefined);
  return { session: words(typeof header === 'string' ? header : undefined) ?? field('prompt_cache_key'), user: field('user') ?? field('safety_identifier') };
}

function words(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= SESSION_CHARACTERS_MAX ? value : undefined;
}

/** What goes into the keys of a prompt first: an engine shares nothing of its cache between two tenants, or between two adapters. */
export function prefixSalt(cacheSalt: string, adapter: string | undefined): string {
  return adapter === undefined ? cacheSalt : `${cacheSalt} ${adapter}`;
}

/**
 * What routing is told of one prompt. Its blocks are hashed when somebody has a choice between replicas, and once; the tenant's salt
 * goes in first, so that two tenants with the same text share nothing.
 */
export class PromptFacts implements PromptTrail {
  readonly tokens: number;
  private hashed: readonly number[] | undefined;

  constructor(private readonly document: JsonDocument, private readonly member: PromptMember, private readonly salt: string, private readonly caller: CallerWords) {
    this.tokens = estimatePromptTokens(document.text.length);
  }

  get blocks(): readonly number[] {
    return (this.hashed ??= this.hash());
  }

  get session(): number | null {
    const name = this.caller.session ?? this.caller.user;
    return name === undefined ? null : textKey(this.salt, name);
  }

  private hash(): readonly number[] {
    const { text, members, isAscii } = this.document;
    const prompt = members.find(({ key }) => key === this.member);
    const tools = members.find(({ key }) => key === 'tools');
    if (prompt === undefined) return [];
    const range = { start: prompt.valueStart, end: prompt.end };
    return promptBlocks(this.salt, text, range, tools === undefined ? undefined : { start: tools.valueStart, end: tools.end }, isAscii ? bytesOf(text.slice(range.start, range.end)) : undefined);
  }
}

/** Prompts are hashed one after the other, so all of them share this. */
let hashedBytes: Buffer | undefined;

function bytesOf(text: string): DataView {
  hashedBytes ??= Buffer.alloc(HASHED_CHARACTERS_MAX);
  const count = hashedBytes.write(text, 0, 'latin1');
  return new DataView(hashedBytes.buffer, hashedBytes.byteOffset, count);
}
