import { ChunkPlanner, type ChunkPlan } from './chunk-plan.js';
import { parseInputLine, type InputFault, type InputLine } from './input-line.js';
import { LINE_BYTES_MAX, splitLines, type Line } from './split-lines.js';

/** Requests of one batch at most. */
export const BATCH_REQUESTS_MAX = 50_000;

/** Inputs of all requests of one batch of embeddings at most, as in OpenAI's API. */
export const BATCH_EMBEDDING_INPUTS_MAX = 50_000;

/** Bytes of one input file at most. */
export const BATCH_INPUT_BYTES_MAX = 200 * 1024 * 1024;

/** Faults that are reported; after so many the rest is not read. */
export const FAULTS_MAX = 100;

export type ValidatedInput = { readonly kind: 'valid'; readonly plan: ChunkPlan } | { readonly kind: 'invalid'; readonly faults: readonly InputFault[] };

const EMBEDDINGS = '/v1/embeddings';

/** Reads a batch input once, in one pass and with flat memory: either every line can be run, or each fault has its line number. */
export async function validateInput(source: AsyncIterable<Uint8Array>, endpoint: string): Promise<ValidatedInput> {
  const check = new InputCheck(endpoint);
  for await (const line of splitLines(source)) {
    check.take(line);
    if (check.isOver) break;
  }
  return check.result();
}

class InputCheck {
  private readonly faults: InputFault[] = [];
  private readonly lineByCustomId = new Map<string, number>();
  private readonly planner = new ChunkPlanner();
  private requests = 0;
  private inputs = 0;
  private model: { readonly name: string; readonly line: number } | undefined;
  private hasTooMany = false;

  constructor(private readonly endpoint: string) {}

  get isOver(): boolean {
    return this.hasTooMany || this.faults.length >= FAULTS_MAX;
  }

  take(line: Line): void {
    const parsed = parseInputLine(line.bytes, line.number, LINE_BYTES_MAX);
    if (parsed.kind === 'blank') return;
    this.requests += 1;
    if (this.requests > BATCH_REQUESTS_MAX) {
      this.hasTooMany = true;
      this.faults.push({ code: 'too_many_tasks', message: `The file has more than ${BATCH_REQUESTS_MAX} requests (reached at line ${line.number}); split it into several batches.`, param: null, line: line.number });
      return;
    }
    if (parsed.kind === 'fault') this.faults.push(parsed.fault);
    else this.takeRequest(parsed.line, line);
  }

  result(): ValidatedInput {
    if (this.faults.length > 0) return { kind: 'invalid', faults: this.faults.slice(-FAULTS_MAX) };
    if (this.model === undefined) {
      return { kind: 'invalid', faults: [{ code: 'empty_file', message: 'The file has no requests; each line must be one JSON object.', param: null, line: null }] };
    }
    return { kind: 'valid', plan: { version: 1, total: this.requests, modelName: this.model.name, chunks: [...this.planner.finish()] } };
  }

  private takeRequest(request: InputLine, line: Line): void {
    const fault = this.urlFault(request, line.number) ?? this.customIdFault(request, line.number) ?? this.modelFault(request, line.number) ?? this.inputsFault(request, line.number);
    if (fault === undefined) this.planner.add(line);
    else this.faults.push(fault);
  }

  private urlFault(request: InputLine, line: number): InputFault | undefined {
    if (request.url === this.endpoint) return undefined;
    return { code: 'url_mismatch', message: `Line ${line}: url must be ${this.endpoint}, the endpoint of the batch.`, param: 'url', line };
  }

  private customIdFault(request: InputLine, line: number): InputFault | undefined {
    const first = this.lineByCustomId.get(request.customId);
    if (first === undefined) {
      this.lineByCustomId.set(request.customId, line);
      return undefined;
    }
    return { code: 'duplicate_custom_id', message: `Line ${line} has the custom_id of line ${first}; each must be unique within the file.`, param: 'custom_id', line };
  }

  private inputsFault({ inputs }: InputLine, line: number): InputFault | undefined {
    if (this.endpoint !== EMBEDDINGS) return undefined;
    this.inputs += inputs;
    if (this.inputs <= BATCH_EMBEDDING_INPUTS_MAX) return undefined;
    this.hasTooMany = true;
    return { code: 'too_many_tasks', message: `The file has more than ${BATCH_EMBEDDING_INPUTS_MAX} inputs in all (reached at line ${line}); split it into several batches.`, param: 'body.input', line };
  }

  private modelFault(request: InputLine, line: number): InputFault | undefined {
    this.model ??= { name: request.model, line };
    if (request.model === this.model.name) return undefined;
    return { code: 'model_mismatch', message: `Line ${line} names another model than line ${this.model.line}; a batch runs on one model.`, param: 'body.model', line };
  }
}
