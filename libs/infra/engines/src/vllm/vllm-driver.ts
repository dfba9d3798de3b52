import { EngineStartError, type EngineDriver, type EngineProcess, type EngineRecord, type EngineStartSpec } from '@penstock/domain-serving';
import { adoptAttached, attachEngine } from '../attached/attach-engine.js';

/** vLLM servers that run already and are attached by their URL. */
export class VllmDriver implements EngineDriver {
  readonly kind = 'vllm';

  async detect(): Promise<{ readonly version: string }> {
    return { version: 'attached by URL' };
  }

  async start(spec: EngineStartSpec): Promise<EngineProcess> {
    if (spec.attachedUrl === null) {
      throw new EngineStartError('engine_missing', 'This agent does not start vLLM itself. Start a vLLM server and attach it: model_artifact attach+http://host:port.');
    }
    return attachEngine(this.kind, spec, spec.attachedUrl);
  }

  async adopt(record: EngineRecord): Promise<EngineProcess | undefined> {
    return adoptAttached(record);
  }
}
