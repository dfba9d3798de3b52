import type { ApiFault } from '@penstock/contract-http';
import type { UsageDraft } from '@penstock/domain-usage';
import type { EngineSession } from './engine-session.js';
import type { Operation, OperationOutcome } from './operation.js';
import { openAiFailureFrames } from './stream-failure.js';

export interface WholeOperationOptions {
  readonly metered: UsageDraft['operation'] | null;
  readonly promptTokensEstimate: number;
  /** Texts that are read. */
  readonly inputs: number;
  readonly perform: (session: EngineSession) => Promise<OperationOutcome>;
}

/** An operation that answers with one JSON body. */
export class WholeOperation implements Operation {
  readonly isStreamed = false;
  readonly terminator = '';
  readonly metered: UsageDraft['operation'] | null;
  readonly promptTokensEstimate: number;
  readonly asked: Operation['asked'];
  readonly perform: (session: EngineSession) => Promise<OperationOutcome>;

  constructor({ metered, promptTokensEstimate, inputs, perform }: WholeOperationOptions) {
    this.metered = metered;
    this.promptTokensEstimate = promptTokensEstimate;
    this.asked = { completionTokensMax: 0, choices: inputs };
    this.perform = perform;
  }

  asksForStream(): boolean {
    return false;
  }

  failureFrames(fault: ApiFault): string {
    return openAiFailureFrames(fault);
  }
}
