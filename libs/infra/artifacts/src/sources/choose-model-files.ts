/** Files beside the weights that engines read. */
const COMPANION_NAMES = new Set([
  'config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json', 'vocab.json', 'merges.txt',
  'tokenizer.model', 'added_tokens.json', 'chat_template.jinja', 'model.safetensors.index.json',
]);

/**
 * Of all files of a repository or folder, those that make up the model: its one GGUF file, else the safetensors weights at its root with
 * what engines read beside them, else its one ONNX file with the weights that lie beside it. Throws when there is nothing or the choice is not clear; pickled weights are never taken.
 */
export function chooseModelFiles(paths: readonly string[]): readonly string[] {
  const gguf = paths.filter((path) => path.endsWith('.gguf'));
  if (gguf.length === 1) return gguf;
  if (gguf.length > 1) throw new Error(`it holds ${gguf.length} GGUF files: name the one to use (${gguf.slice(0, 5).join(', ')}…)`);
  const weights = paths.filter((path) => path.endsWith('.safetensors') && !path.includes('/'));
  if (weights.length > 0) return [...weights, ...paths.filter((path) => COMPANION_NAMES.has(path))].sort();
  const onnx = paths.filter((path) => path.endsWith('.onnx'));
  if (onnx.length === 1) return [...onnx, ...paths.filter((path) => /\.onnx[._]data$/.test(path))].sort();
  if (onnx.length > 1) throw new Error(`it holds ${onnx.length} ONNX files: name the one to use (${onnx.slice(0, 5).join(', ')}…)`);
  const pickles = paths.some((path) => /\.(bin|pt|pth|pkl|ckpt)$/.test(path));
  throw new Error(pickles ? 'it holds only pickled weights, which can run code when they are loaded: convert them to safetensors or GGUF' : 'it holds neither a GGUF nor a safetensors nor an ONNX file');
}
