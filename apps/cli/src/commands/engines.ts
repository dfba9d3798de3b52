import { Flags } from '@oclif/core';
import { deployResponse } from '@penstock/contract-http';
import { ApiCommand, EXIT } from '../api-command.js';
import { readAdapterFlag } from '../client/adapter-flag.js';
import { waitUntilReady } from '../client/wait-until-ready.js';

const ATTACH_WAIT_MS = 60_000;

export class EnginesAttach extends ApiCommand {
  static override summary = 'Put an engine that runs already (vLLM or anything with its API) behind an endpoint.';
  static override examples = ['<%= config.bin %> engines attach --engine-url http://10.0.0.5:8000 --model llama-3-70b-instruct'];
  static override flags = {
    'engine-url': Flags.string({ required: true, description: 'base URL of the engine, without /v1' }),
    model: Flags.string({ required: true, description: 'the model name that requests carry' }),
    slots: Flags.integer({ default: 64, min: 1, description: 'requests it works on at once' }),
    adapter: Flags.string({ multiple: true, description: 'a LoRA adapter that it serves, by its name there; may be given again' }),
    context: Flags.integer({ default: 8_192, min: 1, description: 'its context length in tokens' }),
  };

  async run(): Promise<unknown> {
    const { flags } = await this.parse(EnginesAttach);
    const body = {
      model_name: flags.model,
      model_artifact: `attach+${flags['engine-url']}`,
      framework: 'vllm',
      ...(flags.adapter === undefined ? {} : { adapters: flags.adapter.map(readAdapterFlag) }),
      hardware: { min_replicas: 1, max_replicas: 1 },
      serving: { slots_per_replica: flags.slots, context_tokens: flags.context },
    };
    const client = this.clientFor(flags);
    const deployed = await client.call('POST', '/v1/models/deploy', deployResponse, body);
    const outcome = await waitUntilReady(client, deployed.endpoint_id, ATTACH_WAIT_MS);
    if (outcome.kind === 'failed') return this.error(`The engine at ${flags['engine-url']} is not usable: ${outcome.reason}`, { exit: EXIT.failed });
    this.log(`${flags.model} is served by ${flags['engine-url']} (endpoint ${deployed.endpoint_id}).`);
    return { ...deployed, status: 'running' };
  }
}
