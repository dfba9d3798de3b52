import { Args, Flags } from '@oclif/core';
import { deployResponse } from '@penstock/contract-http';
import { ApiCommand, EXIT } from '../api-command.js';
import { readAdapterFlag } from '../client/adapter-flag.js';
import { printAdvice } from '../plan/print-plan.js';
import { waitUntilReady } from '../client/wait-until-ready.js';

const MS_PER_SECOND = 1_000;

export class Deploy extends ApiCommand {
  static override summary = 'Register a model from an artifact and deploy an endpoint for it.';
  static override description = 'The artifact is one of hf://owner/repository@revision/file, https://…, file:///…, pypi://package@version/file, attach+http://host:port, sim://.';
  static override examples = [
    '<%= config.bin %> deploy my-model hf://owner/repository@main/model.gguf',
    '<%= config.bin %> deploy llama hf://owner/llama@main --engine vllm --gpu h100 --adapter sql=hf://owner/sql-lora',
    '<%= config.bin %> deploy sim-70b sim:// --engine engine-sim --max-replicas 4',
  ];
  static override args = {
    name: Args.string({ required: true, description: 'the model name that requests carry' }),
    artifact: Args.string({ required: true, description: 'where the weights are' }),
  };
  static override flags = {
    engine: Flags.string({ options: ['llama.cpp', 'vllm', 'engine-sim', 'triton', 'onnx'], default: 'llama.cpp', description: 'what serves it' }),
    digest: Flags.string({ description: 'sha256:… that the artifact must have' }),
    'min-replicas': Flags.integer({ default: 1, min: 0 }),
    'max-replicas': Flags.integer({ min: 1, description: 'as many as the minimum, and at least one, when left out' }),
    'scale-to-zero-after': Flags.integer({ min: 1, description: 'seconds without a request after which it is scaled to zero' }),
    slots: Flags.integer({ default: 4, min: 1, description: 'requests one replica works on at once' }),
    context: Flags.integer({ default: 2_048, min: 1, description: 'tokens of prompt and answer together that one request may use' }),
    gpu: Flags.string({ description: 'accelerator type, such as h100 or cpu; the scheduler chooses when left out' }),
    'gpu-count': Flags.integer({ default: 1, min: 1, max: 64, description: 'accelerators of one replica on each of its nodes' }),
    nodes: Flags.integer({ default: 1, min: 1, max: 64, description: 'nodes that one replica is spread over' }),
    mig: Flags.string({ description: 'a MIG instance instead of a whole GPU, such as 1g.10gb' }),
    'gpu-percent': Flags.integer({ min: 1, max: 100, description: 'compute of the GPU that is set aside, in per cent' }),
    spot: Flags.boolean({ default: false, description: 'nodes that may be taken back at short notice will do' }),
    node: Flags.string({ multiple: true, description: 'only this node; may be given again' }),
    tolerate: Flags.string({ multiple: true, description: 'a taint that its replicas may stand on; may be given again' }),
    adapter: Flags.string({ multiple: true, description: 'a LoRA adapter as NAME=URI, or as NAME where the engine has it; may be given again' }),
    exact: Flags.boolean({ description: 'the same request is to give the same bits: nothing is advised that changes them' }),
    wait: Flags.boolean({ default: true, allowNo: true, description: 'wait until it is ready, showing progress' }),
    timeout: Flags.integer({ default: 600, min: 1, description: 'how many seconds to wait' }),
  };

  async run(): Promise<unknown> {
    const { args, flags } = await this.parse(Deploy);
    const idleSeconds = flags['scale-to-zero-after'];
    const body = {
      model_name: args.name,
      model_artifact: args.artifact,
      framework: flags.engine,
      ...(flags.adapter === undefined ? {} : { adapters: flags.adapter.map(readAdapterFlag) }),
      ...(flags.digest === undefined ? {} : { digest: flags.digest }),
      hardware: {
        min_replicas: flags['min-replicas'], max_replicas: flags['max-replicas'] ?? Math.max(1, flags['min-replicas']), gpu_count: flags['gpu-count'], nodes: flags.nodes, allow_spot: flags.spot, tolerations: flags.tolerate ?? [],
        ...(flags.gpu === undefined ? {} : { gpu_type: flags.gpu }),
        ...(flags.mig === undefined ? {} : { mig_profile: flags.mig }),
        ...(flags['gpu-percent'] === undefined ? {} : { gpu_compute_percent: flags['gpu-percent'] }),
        ...(flags.node === undefined ? {} : { node_ids: flags.node }),
      },
      ...(idleSeconds === undefined ? {} : { scaling: { scale_to_zero: true, scale_to_zero_after_idle_seconds: idleSeconds } }),
      serving: { slots_per_replica: flags.slots, context_tokens: flags.context, exact_reproducibility: flags.exact },
    };
    const client = this.clientFor(flags);
    const deployed = await client.call('POST', '/v1/models/deploy', deployResponse, body);
    this.log(`Endpoint ${deployed.endpoint_id} for ${args.name}: ${deployed.status}.`);
    if (deployed.advice?.kind === 'better') for (const line of printAdvice(deployed.advice)) this.log(line);
    if (!flags.wait || flags['min-replicas'] === 0) return deployed;
    const outcome = await waitUntilReady(client, deployed.endpoint_id, flags.timeout * MS_PER_SECOND);
    if (outcome.kind === 'failed') return this.error(outcome.reason, { exit: EXIT.failed });
    this.log(`Ready after ${(outcome.elapsedMs / MS_PER_SECOND).toFixed(1)} s.`);
    return { ...deployed, status: 'running' };
  }
}
