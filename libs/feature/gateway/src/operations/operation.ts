import type { ApiFault } from '@penstock/contract-http';
import type { EngineDialect, EngineFault, JsonDocument, RunningUsage } from '@penstock/domain-serving';
import type { UsageDraft } from '@penstock/domain-usage';
import type { PromptMember } from '../chat/prompt-facts.js';
import type { EngineSession } from './engine-session.js';

export type OperationOutcome =
  /** `answer` is the whole JSON body, or the last frames of a stream. */
  | { readonly kind: 'completed'; readonly usage: RunningUsage; readonly finishReason: string | null; readonly answer: string }
  | { readonly kind: 'failed'; readonly fault: EngineFault }
  | { readonly kind: 'aborted' };

/** One request to a model other than a chat: what to ask an engine, and how to answer. */
export interface Operation {
  /** What its usage is recorded as; null for work that uses no tokens of the model. */
  readonly metered: UsageDraft['operation'] | null;
  /** Whether the client gets a stream. */
  readonly isStreamed: boolean;
  /** Whether an engine that speaks `dialect` is asked for a stream, whatever the client gets. */
  asksForStream(dialect: EngineDialect): boolean;
  /** A cheap bound for admission. */
  readonly promptTokensEstimate: number;
  /** The body and its member that holds the prompt, for work whose prompts share beginnings. */
  readonly prompted?: { readonly document: JsonDocument; readonly member: PromptMember } | undefined;
  /** What the limits of the caller are asked for: tokens of all answers together (null when nothing was said), and answers or inputs. */
  readonly asked: { readonly completionTokensMax: number | null; readonly choices: number };
  /** Works on the request at one replica. Called again for another replica only while nothing was delivered. */
  perform(session: EngineSession): Promise<OperationOutcome>;
  /** The end of a stream that broke off after it began. */
  failureFrames(fault: ApiFault): string;
  /** Comes after the last frames of a stream that went well. */
  readonly terminator: string;
}
