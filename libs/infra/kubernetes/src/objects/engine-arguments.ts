import { adapterSlotsOf, kvEventsPortOf, platformEngineOptions } from '@penstock/domain-catalog';
import { ReplicaAssignmentError, type ReplicaAssignment } from '@penstock/domain-lifecycle';
import { ENGINE_PORT } from './labels.js';

export interface EngineCommand {
  /** Replaces the image's own entry point; left out where that is right. */
  readonly command?: readonly string[] | undefined;
  readonly args: readonly string[];
}

type EngineAssignment = Pick<ReplicaAssignment, 'engine' | 'modelName' | 'source' | 'slots' | 'contextTokens' | 'acceleratorIds' | 'engineOptions' | 'adapters'>;

/** The command line of an engine in its own image. Throws {@link ReplicaAssignmentError} for weights that a Pod cannot fetch. */
export function engineArguments(assignment: EngineAssignment): EngineCommand {
  const { engine, modelName, slots, contextTokens } = assignment;
  switch (engine) {
    case 'vllm':
      return {
        command: ['vllm', 'serve'],
        args: [
          ...hubModel(assignment, '--revision'), '--served-model-name', modelName, '--host', '0.0.0.0', '--port', String(ENGINE_PORT),
          '--max-model-len', String(contextTokens), '--max-num-seqs', String(slots),
          '--tensor-parallel-size', String(Math.max(1, assignment.acceleratorIds.length)), ...kvEventFlags(assignment), ...vllmAdapterFlags(assignment), ...optionFlags(assignment),
        ],
      };
    case 'llama.cpp':
      return {
        args: [
          ...ggufSource(assignment), '--alias', modelName, '--host', '0.0.0.0', '--port', String(ENGINE_PORT),
          // The server divides its context by the slots.
          '--ctx-size', String(contextTokens * slots), '--parallel', String(slots), '--metrics', '--jinja', ...optionFlags(assignment),
        ],
      };
    case 'engine-sim':
      return {
        args: ['--port', String(ENGINE_PORT), '--model', modelName, '--max-num-seqs', String(slots), '--max-model-len', String(contextTokens), ...simAdapterFlags(assignment), ...optionFlags(assignment)],
      };
    case 'triton':
    case 'onnx':
      throw new ReplicaAssignmentError('engine_missing', `Pods do not run ${engine}: deploy the model on a node with its own agent.`);
  }
}

function hubModel({ source }: EngineAssignment, revisionFlag: string): readonly string[] {
  if (source.kind === 'hugging-face') return [source.repository, revisionFlag, source.revision];
  throw cannotFetch(source.kind, 'vLLM in a Pod loads a repository of a hub: give the model as hf://owner/repository@revision');
}

function ggufSource({ source }: EngineAssignment): readonly string[] {
  if (source.kind === 'hugging-face' && source.files[0] !== undefined) return ['--hf-repo', source.repository, '--hf-file', source.files[0]];
  if (source.kind === 'https' && source.urls[0] !== undefined) return ['--model-url', source.urls[0]];
  throw cannotFetch(source.kind, 'llama.cpp in a Pod loads a GGUF file from a hub or by URL: give the model as hf://owner/repository@revision/file.gguf or https://…');
}

function cannotFetch(kind: string, nextStep: string): ReplicaAssignmentError {
  return new ReplicaAssignmentError('pull_failed', `A Pod cannot fetch weights of the kind ${kind}. ${nextStep}.`);
}

/** vLLM fetches adapters from the hub by the name of their repository. Throws {@link ReplicaAssignmentError}. */
function vllmAdapterFlags(assignment: EngineAssignment): readonly string[] {
  const modules = (assignment.adapters ?? []).map(({ name, source }) => {
    if (source?.kind !== 'hugging-face') throw cannotFetch(source?.kind ?? 'none', `vLLM in a Pod loads its adapter ${name} out of a repository of a hub: give it as hf://owner/repository`);
    return `${name}=${source.repository}`;
  });
  return modules.length === 0 ? [] : ['--enable-lora', ...adapterSlotFlags(assignment), '--lora-modules', ...modules];
}

function simAdapterFlags(assignment: EngineAssignment): readonly string[] {
  const { adapters = [] } = assignment;
  return adapters.length === 0 ? [] : [...adapterSlotFlags(assignment), '--lora-modules', adapters.map(({ name }) => name).join(',')];
}

/** An endpoint that says `max_loras` itself has the flag from its options. */
function adapterSlotFlags({ adapters = [], engineOptions }: EngineAssignment): readonly string[] {
  return 'max_loras' in engineOptions ? [] : ['--max-loras', String(adapterSlotsOf(adapters.length, engineOptions))];
}

/** Cache events for the gateways, on the Pod's own address. They subscribe to every topic. */
function kvEventFlags(assignment: EngineAssignment): readonly string[] {
  const port = kvEventsPortOf(assignment);
  // vLLM binds an endpoint with a wildcard, and connects to any other.
  return port === null ? [] : ['--kv-events-config', JSON.stringify({ enable_kv_cache_events: true, publisher: 'zmq', endpoint: `tcp://*:${port}`, topic: `kv@${assignment.modelName}` })];
}

/** Options of the endpoint, but for those that are the platform's own, as flags: `gpu_memory_utilization: 0.9` becomes `--gpu-memory-utilization 0.9`; `true` a bare flag, `false` none. */
function optionFlags({ engineOptions }: EngineAssignment): readonly string[] {
  return Object.entries(engineOptions).filter(([name]) => !(platformEngineOptions as readonly string[]).includes(name)).sort(([one], [other]) => (one < other ? -1 : 1)).flatMap(([name, value]) => {
    const flag = `--${name.replaceAll('_', '-')}`;
    return value === true ? [flag] : value === false ? [] : [flag, String(value)];
  });
}
