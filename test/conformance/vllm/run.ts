import type { Run } from '../../harness.js';
import { createKey, deployModel } from '../deploy-model.js';
import { checkTargets } from '../run.js';
import { withPlatform } from '../with-platform.js';
import { serveVllm } from './serve-vllm.js';

const MODEL = 'tiny-on-vllm';

/** Every client against a real vLLM, which this command installs: some minutes and 6 GB, once for a machine. */
export const run: Run = ({ say }) => withPlatform(say, async (platform, folder) => {
  const vllm = await serveVllm(folder, say);
  try {
    say(`vLLM ${vllm.version} serves ${vllm.model}`);
    await deployModel(platform, {
      model_name: MODEL, model_artifact: `attach+${vllm.url}`, framework: 'vllm', serving: { slots_per_replica: 8, context_tokens: 2_048 },
    });
    return await checkTargets([{ baseUrl: `${platform.url}/v1`, apiKey: await createKey(platform), model: MODEL, engine: `vLLM ${vllm.version}` }], say);
  } finally {
    await vllm.stop();
  }
});
