import { tensorModel } from '@penstock/contract-http';
import { zeroInfer, type EngineTarget, type ProbeResult } from '@penstock/domain-serving';
import { engineRequest, engineRequestBinary } from './engine-http.js';

/** Health of an engine of tensors by one inference on zeros of the declared shapes: its own word stays good while its model is dead. */
export async function probeTensors(target: EngineTarget, timeoutMs: number): Promise<ProbeResult> {
  const startedMs = performance.now();
  const url = `${target.url}/v2/models/${encodeURIComponent(target.servedModel)}`;
  const failed = (reason: string): ProbeResult => ({ kind: 'failed', reason });
  try {
    const described = await engineRequest(url, timeoutMs);
    const model = described.status === 200 ? tensorModel.safeParse(JSON.parse(described.text)) : undefined;
    if (model?.success !== true) return failed(`the engine does not describe its model: GET /v2/models/… has status ${described.status}`);
    const message = zeroInfer(model.data.inputs);
    if (message === undefined) return (await engineRequest(`${url}/ready`, timeoutMs)).status === 200 ? { kind: 'answered', ms: performance.now() - startedMs, completionTokens: 0 } : failed('the engine says that its model is not ready');
    const reply = await engineRequestBinary(`${url}/infer`, timeoutMs, message);
    return reply.status === 200 ? { kind: 'answered', ms: performance.now() - startedMs, completionTokens: 0 } : failed(`the engine answered an inference on zeros with status ${reply.status}: ${reply.text.slice(0, 300)}`);
  } catch (error) {
    return failed(`the engine did not answer an inference on zeros: ${(error as Error).message}`);
  }
}
