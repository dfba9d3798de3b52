import type { SharedRecords } from '@penstock/kernel';
import { answerHead, type AnswerHead } from './answer-head.js';

/** A head and the revision that a change of it needs. */
export interface FoundHead {
  readonly head: AnswerHead;
  readonly revision: number;
}

const decoder = new TextDecoder();

/** Answers in shared records: a head, and numbered pieces. */
export class AnswerStore {
  constructor(private readonly records: SharedRecords) {}

  async find(key: string): Promise<FoundHead | undefined> {
    const record = await this.records.get(`${key}.head`);
    if (record === undefined) return undefined;
    return { head: answerHead.parse(JSON.parse(decoder.decode(record.value))), revision: record.revision };
  }

  /** Undefined when another gateway was faster. */
  create(key: string, head: AnswerHead): Promise<number | undefined> {
    return this.records.create(`${key}.head`, encode(head));
  }

  update(key: string, head: AnswerHead, revision: number): Promise<number | undefined> {
    return this.records.update(`${key}.head`, encode(head), revision);
  }

  async remove(key: string): Promise<void> {
    await this.records.delete(`${key}.head`);
  }

  putPiece(key: string, attempt: number, index: number, bytes: Uint8Array): Promise<void> {
    return this.records.put(`${key}.${attempt}.${index}`, bytes);
  }

  async piece(key: string, attempt: number, index: number): Promise<Uint8Array | undefined> {
    return (await this.records.get(`${key}.${attempt}.${index}`))?.value;
  }
}

function encode(head: AnswerHead): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(head));
}
