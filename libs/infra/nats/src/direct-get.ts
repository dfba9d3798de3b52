import { TimeoutError, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { BrokerError, brokerCodes, brokerRequest, API_TIMEOUT_MS } from './broker-api.js';
import { isCopyInAnswer, isCopyInRaw } from './copied-message.js';
import { inboxOf } from './inbox.js';

/** A message as it is stored. */
export interface StoredMessage {
  readonly subject: string;
  readonly sequence: number;
  readonly data: Uint8Array;
  /** The broker's message id; empty when it has none. */
  readonly messageId: string;
  /** It was not appended: see `isCopy`. */
  readonly isCopy: boolean;
}

export interface DirectGetRequest {
  readonly seq: number;
  readonly batch: number;
  readonly next_by_subj?: string | undefined;
}

export interface DirectGetPage {
  readonly messages: readonly StoredMessage[];
  /** Messages that match and come after this page. */
  readonly pending: number;
}

/**
 * Reads a run of messages without a consumer. Any replica may answer, so the newest messages can be missing.
 * Written on plain subscriptions, since the library's iterator keeps its subscription after the end of a batch.
 */
export function directGetPage(connection: NatsConnection, stream: string, request: DirectGetRequest): Promise<DirectGetPage> {
  return new Promise((resolve, reject) => {
    const messages: StoredMessage[] = [];
    let pending = 0;
    const finish = (settle: () => void): void => {
      clearTimeout(timer);
      subscription.unsubscribe();
      settle();
    };
    const inbox = inboxOf(connection);
    const subscription = connection.subscribe(inbox, {
      callback: (error, message) => {
        if (error !== null) return finish(() => reject(error));
        const code = message.headers?.code ?? 0;
        if (code === 204 || code === 404) return finish(() => resolve({ messages, pending: code === 404 ? 0 : pending }));
        if (code !== 0) return finish(() => reject(new BrokerError(code, 0, message.headers?.description ?? 'direct get failed')));
        messages.push(storedMessage(message));
        pending = Number(message.headers?.get('Nats-Num-Pending') ?? 0);
      },
    });
    const timer = setTimeout(() => finish(() => reject(new TimeoutError())), API_TIMEOUT_MS);
    try {
      connection.publish(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(request), { reply: inbox });
    } catch (error) {
      finish(() => reject(error as Error));
    }
  });
}

function storedMessage(message: Msg): StoredMessage {
  const headers = message.headers;
  return {
    subject: headers?.last('Nats-Subject') ?? '',
    sequence: Number(headers?.last('Nats-Sequence') ?? 0),
    data: message.data,
    messageId: headers?.get('Nats-Msg-Id') ?? '',
    isCopy: isCopyInAnswer(headers),
  };
}

interface LeaderReply {
  readonly message: { readonly subject: string; readonly seq: number; readonly data?: string; readonly hdrs?: string };
}

export type LeaderGetRequest = { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj?: string };

/** Reads one message from the stream's leader: never stale, and slower. Undefined when there is none. */
export async function leaderGet(connection: NatsConnection, stream: string, request: LeaderGetRequest): Promise<StoredMessage | undefined> {
  try {
    const { message } = await brokerRequest<LeaderReply>(connection, `$JS.API.STREAM.MSG.GET.${stream}`, request);
    const rawHeaders = Buffer.from(message.hdrs ?? '', 'base64').toString('utf8');
    return {
      subject: message.subject,
      sequence: message.seq,
      data: Buffer.from(message.data ?? '', 'base64'),
      messageId: /^Nats-Msg-Id: (.*)$/m.exec(rawHeaders)?.[1]?.trim() ?? '',
      isCopy: isCopyInRaw(rawHeaders),
    };
  } catch (error) {
    if (error instanceof BrokerError && error.errorCode === brokerCodes.messageNotFound) return undefined;
    throw error;
  }
}
