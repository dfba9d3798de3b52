import { describe, expect, test } from '@jest/globals';
import type { ModelVersionRegisteredV1, ModelVersionSubmittedV1, ModelVersionTensorsReadV1 } from '@penstock/contract-events';
import { modelVersionRegisteredV1, modelVersionSubmittedV1, modelVersionTensorsReadV1 } from '@penstock/contract-events';
import { given } from '@penstock/testing-kit';
import fc from 'fast-check';
import { modelVersionDecider, type ModelVersionCommand, type ModelVersionEvent } from './model-version.js';

const data = modelVersionSubmittedV1.example as ModelVersionSubmittedV1;
const registered = modelVersionRegisteredV1.example as ModelVersionRegisteredV1;
const submittedEvent: ModelVersionEvent = { type: 'model-version.submitted.v1', data };
const registeredEvent: ModelVersionEvent = { type: 'model-version.registered.v1', data: registered };
const rejectedEvent: ModelVersionEvent = { type: 'model-version.rejected.v1', data: { modelVersionId: 'mv_01', code: 'pull_failed', reason: 'no route' } };
const submit = (change: Partial<ModelVersionSubmittedV1> = {}): ModelVersionCommand => ({ kind: 'submit', data: { ...data, ...change } });

describe('modelVersionDecider', () => {
  test('takes a submission in', () => {
    given(modelVersionDecider).when(submit()).then(submittedEvent);
  });

  test('the same submission again changes nothing, wherever else the bytes may be had', () => {
    given(modelVersionDecider, submittedEvent).when(submit({ fallbackSources: [{ kind: 'none' }], license: 'mit' })).then();
    given(modelVersionDecider, submittedEvent, registeredEvent).when(submit()).then();
  });

  test('a version never changes its content', () => {
    const refusal = given(modelVersionDecider, submittedEvent, registeredEvent)
      .when(submit({ source: { kind: 'https', urls: ['https://example.org/other.gguf'] } }))
      .thenRefused('already_exists');
    expect(refusal.param).toBe('version');
  });

  test('a rejected version may be submitted again, also with other content', () => {
    const other = submit({ source: { kind: 'directory', path: '/models/a.gguf' } });
    given(modelVersionDecider, submittedEvent, rejectedEvent).when(other).then({ type: 'model-version.submitted.v1', data: (other as { data: ModelVersionSubmittedV1 }).data });
  });

  test('what has nothing to pull is registered at once from its declared figures', () => {
    const attached = { ...data, engine: 'vllm' as const, source: { kind: 'attached' as const, url: 'http://10.0.0.5:8000' }, declared: { contextTokensMax: 8_192, capabilities: ['chat' as const] } };
    given(modelVersionDecider).when({ kind: 'submit', data: attached }).then(
      { type: 'model-version.submitted.v1', data: attached },
      {
        type: 'model-version.registered.v1',
        data: {
          modelVersionId: 'mv_01', artifacts: [], source: attached.source, format: 'none', architecture: null, parameters: null, precision: null, layers: null,
          contextTokensMax: 8_192, memory: { weightBytes: 0, kvBytesPerToken: 0, overheadBytes: 0, basis: 'declared' }, capabilities: ['chat'], license: null, randomWeights: false,
        },
      },
    );
  });

  test.each([
    ['vllm', { kind: 'none' }],
    ['engine-sim', { kind: 'directory', path: '/m' }],
    ['llama.cpp', { kind: 'attached', url: 'http://10.0.0.5:8000' }],
    ['onnx', { kind: 'attached', url: 'http://10.0.0.5:8000' }],
    ['onnx', { kind: 'none' }],
    ['triton', { kind: 'none' }],
  ] as const)('%s refuses a source it cannot use', (engine, source) => {
    expect(given(modelVersionDecider).when(submit({ engine, source })).thenRefused('invalid_value').param).toBe('source');
  });

  test('the first end counts; another instance that comes later changes nothing', () => {
    const register: ModelVersionCommand = { kind: 'register', data: registered };
    const reject: ModelVersionCommand = { kind: 'reject', code: 'pull_failed', reason: 'no route' };
    given(modelVersionDecider, submittedEvent).when(register).then(registeredEvent);
    given(modelVersionDecider, submittedEvent).when(reject).then(rejectedEvent);
    given(modelVersionDecider, submittedEvent, registeredEvent).when(reject).then();
    given(modelVersionDecider, submittedEvent, rejectedEvent).when(register).then();
    given(modelVersionDecider).when(register).thenRefused('not_found');
    given(modelVersionDecider).when(reject).thenRefused('not_found');
  });

  test('the tensors of a model are told together with its registration', () => {
    const tensors = modelVersionTensorsReadV1.example as ModelVersionTensorsReadV1;
    given(modelVersionDecider, submittedEvent).when({ kind: 'register', data: registered, tensors }).then(registeredEvent, { type: 'model-version.tensors-read.v1', data: tensors });
    given(modelVersionDecider, submittedEvent, rejectedEvent).when({ kind: 'register', data: registered, tensors }).then();
  });

  test('property: once registered it stays registered, whatever is asked', () => {
    const command = fc.oneof(
      fc.constantFrom(...['v1', 'v2'].map((version) => submit({ version }))),
      fc.constant<ModelVersionCommand>({ kind: 'register', data: registered }),
      fc.constant<ModelVersionCommand>({ kind: 'reject', code: 'pull_failed', reason: 'no route' }),
    );
    fc.assert(fc.property(fc.array(command, { maxLength: 30 }), (commands) => {
      let state = modelVersionDecider.initialState;
      let wasRegistered = false;
      for (const next of commands) {
        const decision = modelVersionDecider.decide(next, state);
        if (decision.kind === 'accepted') for (const event of decision.events) state = modelVersionDecider.evolve(state, event);
        if (wasRegistered) expect(state.status).toBe('registered');
        wasRegistered ||= state.status === 'registered';
      }
    }));
  });
});
