import type { EngineDialect, EngineFault } from './engine-dialect.js';
import { brokenAnswerFault } from './engine-fault.js';
import { addUsage, noUsage, type RunningUsage } from './engine-usage.js';
import { isRecord } from './json-fields.js';

/** What one event of an engine's stream leads to. Nothing comes after `completed` or a fault. */
export interface EngineStreamStep<Chunk> {
  readonly chunks: readonly Chunk[];
  readonly outcome: 'open' | 'completed' | EngineFault;
}

/** What is known of one choice of the answer: its finish reason once it has one. */
export interface StreamedChoice<Finish extends string> {
  finish: Finish | null;
}

/** Reads what any engine streams for one request, event by event, and turns its choices into chunks of one API. */
export abstract class EngineStream<Chunk, Finish extends string, Choice extends StreamedChoice<Finish>> {
  protected readonly choices = new Map<number, Choice>();
  protected running: RunningUsage = noUsage;
  /** Chunks that carried content. */
  protected pieces = 0;
  protected outcome: EngineStreamStep<Chunk>['outcome'] = 'open';

  constructor(protected readonly dialect: EngineDialect) {}

  /** Takes the data of one event of the engine's stream. */
  push(data: string): EngineStreamStep<Chunk> {
    if (this.outcome !== 'open') return { chunks: [], outcome: this.outcome };
    if (data.trim() === '[DONE]') return this.end();
    let body: unknown;
    try {
      body = JSON.parse(data);
    } catch {
      return this.fail(brokenAnswerFault);
    }
    const fault = this.dialect.readFault(200, body);
    if (fault !== undefined) return this.fail(fault);
    const chunks: Chunk[] = [];
    const choices = isRecord(body) && Array.isArray(body['choices']) ? body['choices'] as unknown[] : [];
    for (const choice of choices) {
      const broken = this.takeChoice(choice, chunks);
      if (broken !== undefined) return this.fail(broken, chunks);
    }
    const reading = this.dialect.readUsage(body);
    if (reading !== undefined) this.running = addUsage(this.running, reading);
    const excess = this.excess();
    return excess === undefined ? { chunks, outcome: 'open' } : this.fail(excess, chunks);
  }

  /** The engine's stream ended: by `[DONE]`, or because its connection did. It went well only when every choice finished. */
  end(): EngineStreamStep<Chunk> {
    if (this.outcome !== 'open') return { chunks: [], outcome: this.outcome };
    if (this.choices.size < this.choicesMin) return this.fail(brokenAnswerFault);
    for (const { finish } of this.choices.values()) if (finish === null) return this.fail(brokenAnswerFault);
    this.outcome = 'completed';
    return { chunks: this.lastChunks(), outcome: 'completed' };
  }

  /** Usage up to the last event; counted from the pieces of content while the engine has said nothing. */
  usage(): RunningUsage {
    return this.running.known ? this.running : { ...noUsage, completionTokens: this.pieces };
  }

  /** The finish reason of the first choice, once it has one. */
  finishReason(): Finish | null {
    return this.choices.get(0)?.finish ?? null;
  }

  /** A complete answer has so many choices at least. */
  protected abstract readonly choicesMin: number;

  /** Adds what one choice of an event leads to; returns a fault where it is none of ours. */
  protected abstract takeChoice(choice: unknown, chunks: Chunk[]): EngineFault | undefined;

  /** A fault once the engine said more than it may. */
  protected excess(): EngineFault | undefined {
    return undefined;
  }

  /** What comes after the last choice of an answer that is complete. */
  protected lastChunks(): readonly Chunk[] {
    return [];
  }

  private fail(fault: EngineFault, chunks: readonly Chunk[] = []): EngineStreamStep<Chunk> {
    this.outcome = fault;
    return { chunks, outcome: fault };
  }
}
