import { Flags } from '@oclif/core';
import { fleetBody, planBody, type PlanBody } from '@penstock/contract-http';
import { ApiCommand } from '../api-command.js';
import type { ApiClient } from '../client/api-client.js';
import { printPlan } from '../plan/print-plan.js';

export class PlanDeploy extends ApiCommand {
  static override summary = 'Try a deployment out: where it would stand, what it would cost, and what would be cheaper. Changes nothing.';
  static override examples = [
    '<%= config.bin %> plan deploy --model meta-llama/Llama-3.1-70B-Instruct --gpu h100 --gpus 4 --rps 10',
    '<%= config.bin %> plan deploy --model my-embedder --exact --json',
  ];
  static override flags = {
    model: Flags.string({ required: true, description: 'an endpoint, a registered model, or the repository of a well-known model' }),
    gpu: Flags.string({ description: 'type of GPU, such as h100; any of the fleet when left out' }),
    gpus: Flags.integer({ min: 1, max: 64, description: 'GPUs of one replica' }),
    precision: Flags.string({ description: 'such as bf16, fp8 or int4; as registered when left out' }),
    rps: Flags.string({ description: 'requests per second; what --replicas carry when left out' }),
    replicas: Flags.integer({ min: 1, default: 1 }),
    'prompt-tokens': Flags.integer({ min: 0, default: 1_000, description: 'of a typical request' }),
    'completion-tokens': Flags.integer({ min: 0, default: 200, description: 'of a typical answer' }),
    class: Flags.string({ options: ['interactive', 'standard', 'batch'], default: 'interactive', description: 'how soon callers need an answer' }),
    ttft: Flags.integer({ min: 1, description: 'milliseconds to the first token; those of the class when left out' }),
    itl: Flags.integer({ min: 1, description: 'milliseconds between tokens; those of the class when left out' }),
    spot: Flags.boolean({ description: 'nodes that may be taken back will do' }),
    exact: Flags.boolean({ description: 'the same request is to give the same bits' }),
  };

  async run(): Promise<unknown> {
    const { flags } = await this.parse(PlanDeploy);
    const client = this.clientFor(flags);
    const plan = await client.call('POST', '/admin/v1/plans', planBody, {
      deployment: {
        model: flags.model, gpu_type: flags.gpu ?? null, gpu_count: flags.gpus ?? null, precision: flags.precision ?? null, requests_per_s: flags.rps === undefined ? null : Number(flags.rps), replicas: flags.replicas,
        prompt_tokens: flags['prompt-tokens'], completion_tokens: flags['completion-tokens'], latency_class: flags.class, ttft_ms: flags.ttft ?? null, itl_ms: flags.itl ?? null, allows_spot: flags.spot, exact: flags.exact,
      },
    });
    await showPlan(this, client, plan);
    return plan;
  }
}

export class PlanNodes extends ApiCommand {
  static override summary = 'Try a change of the fleet out: what would move, lose its place, and cost. Changes nothing.';
  static override examples = ['<%= config.bin %> plan nodes --add 4xH100 --remove node_01…', '<%= config.bin %> plan nodes --lose rack-7 --json'];
  static override flags = {
    add: Flags.string({ multiple: true, default: [], description: 'such as 4xH100 for GPUs, or 2xhgx-8xH100-SXM for nodes of a shape' }),
    remove: Flags.string({ multiple: true, default: [], description: 'a node, as `fleet` lists it' }),
    lose: Flags.string({ multiple: true, default: [], description: 'a failure domain, such as a rack' }),
  };

  async run(): Promise<unknown> {
    const { flags } = await this.parse(PlanNodes);
    const client = this.clientFor(flags);
    const plan = await client.call('POST', '/admin/v1/plans', planBody, { nodes: { add: flags.add, remove: flags.remove, lose: flags.lose } });
    await showPlan(this, client, plan);
    return plan;
  }
}

/** Host names say more than ids. */
async function showPlan(command: ApiCommand, client: ApiClient, plan: PlanBody): Promise<void> {
  const { nodes } = await client.call('GET', '/admin/v1/fleet', fleetBody);
  const names = new Map(nodes.map((node) => [node.nodeId, node.hostname]));
  for (const line of printPlan(plan, (nodeId) => names.get(nodeId) ?? nodeId)) command.log(line);
}
