/** What planning needs to know of a model's files, before anything of it was measured. */
export interface ModelFacts {
  readonly id: string;
  readonly kind: string;
  readonly params: number;
  /** Parameters that one token uses; fewer than all in a mixture of experts. */
  readonly activeParams: number;
  readonly layers: number;
  readonly hidden: number;
  readonly kvHeads: number;
  readonly vocabulary: number;
  readonly maxContext: number;
  /** Bytes of key-value cache for one token at 16 bits; 0 without a cache. */
  readonly kvBytesPerToken: number;
  /** Bytes of all weights by precision. */
  readonly weightBytes: Readonly<Record<string, number>>;
  /** Whether the values were read from the model's configuration. */
  readonly status: string;
}

/**
 * Well-known models for plans and simulations; a registered model version has its own facts, read from its files.
 * Source: configurations as copied in NVIDIA aiconfigurator, inference-sim and LLMServingSim.
 */
export const MODEL_FACTS: readonly ModelFacts[] = [
  { id: 'meta-llama/Llama-3.1-8B-Instruct', kind: 'llm', params: 8030000000, activeParams: 8030000000, layers: 32, hidden: 4096, kvHeads: 8, vocabulary: 128256, maxContext: 131072, kvBytesPerToken: 131072, weightBytes: { bf16: 16060000000, fp8: 8030000000, int4: 4416500000 }, status: 'config-verified' },
  { id: 'meta-llama/Llama-3.1-70B-Instruct', kind: 'llm', params: 70550000000, activeParams: 70550000000, layers: 80, hidden: 8192, kvHeads: 8, vocabulary: 128256, maxContext: 131072, kvBytesPerToken: 327680, weightBytes: { bf16: 141100000000, fp8: 70550000000, int4: 38802500000 }, status: 'config-verified' },
  { id: 'meta-llama/Llama-3.3-70B-Instruct', kind: 'llm', params: 70550000000, activeParams: 70550000000, layers: 80, hidden: 8192, kvHeads: 8, vocabulary: 128256, maxContext: 131072, kvBytesPerToken: 327680, weightBytes: { bf16: 141100000000, fp8: 70550000000, int4: 38802500000 }, status: 'config-verified' },
  { id: 'meta-llama/Llama-3.1-405B-Instruct', kind: 'llm', params: 405900000000, activeParams: 405900000000, layers: 126, hidden: 16384, kvHeads: 8, vocabulary: 128256, maxContext: 131072, kvBytesPerToken: 516096, weightBytes: { bf16: 811800000000, fp8: 405900000000, int4: 223245000000 }, status: 'config-verified' },
  { id: 'meta-llama/Llama-3.2-1B-Instruct', kind: 'llm', params: 1236000000, activeParams: 1236000000, layers: 16, hidden: 2048, kvHeads: 8, vocabulary: 128256, maxContext: 131072, kvBytesPerToken: 32768, weightBytes: { bf16: 2472000000, fp8: 1236000000, int4: 679800000 }, status: 'from-memory' },
  { id: 'meta-llama/Llama-3.2-3B-Instruct', kind: 'llm', params: 3213000000, activeParams: 3213000000, layers: 28, hidden: 3072, kvHeads: 8, vocabulary: 128256, maxContext: 131072, kvBytesPerToken: 114688, weightBytes: { bf16: 6426000000, fp8: 3213000000, int4: 1767150000 }, status: 'from-memory' },
  { id: 'meta-llama/Llama-2-7b-hf', kind: 'llm', params: 6738000000, activeParams: 6738000000, layers: 32, hidden: 4096, kvHeads: 32, vocabulary: 32000, maxContext: 4096, kvBytesPerToken: 524288, weightBytes: { bf16: 13476000000, fp8: 6738000000, int4: 3705900000 }, status: 'config-verified' },
  { id: 'mistralai/Mistral-7B-Instruct-v0.3', kind: 'llm', params: 7250000000, activeParams: 7250000000, layers: 32, hidden: 4096, kvHeads: 8, vocabulary: 32768, maxContext: 32768, kvBytesPerToken: 131072, weightBytes: { bf16: 14500000000, fp8: 7250000000, int4: 3987500000 }, status: 'from-memory' },
  { id: 'mistralai/Mistral-Nemo-Instruct-2407', kind: 'llm', params: 12250000000, activeParams: 12250000000, layers: 40, hidden: 5120, kvHeads: 8, vocabulary: 131072, maxContext: 131072, kvBytesPerToken: 163840, weightBytes: { bf16: 24500000000, fp8: 12250000000, int4: 6737500000 }, status: 'config-verified' },
  { id: 'mistralai/Mistral-Small-24B-Instruct-2501', kind: 'llm', params: 23600000000, activeParams: 23600000000, layers: 40, hidden: 5120, kvHeads: 8, vocabulary: 131072, maxContext: 32768, kvBytesPerToken: 163840, weightBytes: { bf16: 47200000000, fp8: 23600000000, int4: 12980000000 }, status: 'from-memory' },
  { id: 'mistralai/Mixtral-8x7B-Instruct-v0.1', kind: 'llm', params: 46700000000, activeParams: 12900000000, layers: 32, hidden: 4096, kvHeads: 8, vocabulary: 32000, maxContext: 32768, kvBytesPerToken: 131072, weightBytes: { bf16: 93400000000, fp8: 46700000000, int4: 25685000000 }, status: 'config-verified' },
  { id: 'mistralai/Mixtral-8x22B-Instruct-v0.1', kind: 'llm', params: 140600000000, activeParams: 39100000000, layers: 56, hidden: 6144, kvHeads: 8, vocabulary: 32768, maxContext: 65536, kvBytesPerToken: 229376, weightBytes: { bf16: 281200000000, fp8: 140600000000, int4: 77330000000 }, status: 'config-verified' },
  { id: 'Qwen/Qwen2.5-7B-Instruct', kind: 'llm', params: 7616000000, activeParams: 7616000000, layers: 28, hidden: 3584, kvHeads: 4, vocabulary: 152064, maxContext: 32768, kvBytesPerToken: 57344, weightBytes: { bf16: 15232000000, fp8: 7616000000, int4: 4188800000 }, status: 'config-verified' },
  { id: 'Qwen/Qwen2.5-14B-Instruct', kind: 'llm', params: 14770000000, activeParams: 14770000000, layers: 48, hidden: 5120, kvHeads: 8, vocabulary: 152064, maxContext: 32768, kvBytesPerToken: 196608, weightBytes: { bf16: 29540000000, fp8: 14770000000, int4: 8123500000 }, status: 'from-memory' },
  { id: 'Qwen/Qwen2.5-32B-Instruct', kind: 'llm', params: 32760000000, activeParams: 32760000000, layers: 64, hidden: 5120, kvHeads: 8, vocabulary: 152064, maxContext: 32768, kvBytesPerToken: 262144, weightBytes: { bf16: 65520000000, fp8: 32760000000, int4: 18018000000 }, status: 'from-memory' },
  { id: 'Qwen/Qwen2.5-72B-Instruct', kind: 'llm', params: 72700000000, activeParams: 72700000000, layers: 80, hidden: 8192, kvHeads: 8, vocabulary: 152064, maxContext: 32768, kvBytesPerToken: 327680, weightBytes: { bf16: 145400000000, fp8: 72700000000, int4: 39985000000 }, status: 'from-memory' },
  { id: 'Qwen/Qwen3-8B', kind: 'llm', params: 8190000000, activeParams: 8190000000, layers: 36, hidden: 4096, kvHeads: 8, vocabulary: 151936, maxContext: 40960, kvBytesPerToken: 147456, weightBytes: { bf16: 16380000000, fp8: 8190000000, int4: 4504500000 }, status: 'config-verified' },
  { id: 'Qwen/Qwen3-14B', kind: 'llm', params: 14770000000, activeParams: 14770000000, layers: 40, hidden: 5120, kvHeads: 8, vocabulary: 151936, maxContext: 40960, kvBytesPerToken: 163840, weightBytes: { bf16: 29540000000, fp8: 14770000000, int4: 8123500000 }, status: 'config-verified' },
  { id: 'Qwen/Qwen3-32B', kind: 'llm', params: 32760000000, activeParams: 32760000000, layers: 64, hidden: 5120, kvHeads: 8, vocabulary: 151936, maxContext: 40960, kvBytesPerToken: 262144, weightBytes: { bf16: 65520000000, fp8: 32760000000, int4: 18018000000 }, status: 'config-verified' },
  { id: 'Qwen/Qwen3-30B-A3B', kind: 'llm', params: 30500000000, activeParams: 3300000000, layers: 48, hidden: 2048, kvHeads: 4, vocabulary: 151936, maxContext: 40960, kvBytesPerToken: 98304, weightBytes: { bf16: 61000000000, fp8: 30500000000, int4: 16775000000 }, status: 'config-verified' },
  { id: 'Qwen/Qwen3-235B-A22B', kind: 'llm', params: 235000000000, activeParams: 22000000000, layers: 94, hidden: 4096, kvHeads: 4, vocabulary: 151936, maxContext: 40960, kvBytesPerToken: 192512, weightBytes: { bf16: 470000000000, fp8: 235000000000, int4: 129250000000 }, status: 'config-verified' },
  { id: 'google/gemma-2-9b-it', kind: 'llm', params: 9240000000, activeParams: 9240000000, layers: 42, hidden: 3584, kvHeads: 8, vocabulary: 256000, maxContext: 8192, kvBytesPerToken: 344064, weightBytes: { bf16: 18480000000, fp8: 9240000000, int4: 5082000000 }, status: 'config-verified' },
  { id: 'google/gemma-2-27b-it', kind: 'llm', params: 27200000000, activeParams: 27200000000, layers: 46, hidden: 4608, kvHeads: 16, vocabulary: 256000, maxContext: 8192, kvBytesPerToken: 376832, weightBytes: { bf16: 54400000000, fp8: 27200000000, int4: 14960000000 }, status: 'config-verified' },
  { id: 'google/gemma-3-4b-it', kind: 'llm', params: 4300000000, activeParams: 4300000000, layers: 34, hidden: 2560, kvHeads: 4, vocabulary: 262208, maxContext: 131072, kvBytesPerToken: 139264, weightBytes: { bf16: 8600000000, fp8: 4300000000, int4: 2365000000 }, status: 'from-memory' },
  { id: 'google/gemma-3-12b-it', kind: 'llm', params: 12200000000, activeParams: 12200000000, layers: 48, hidden: 3840, kvHeads: 8, vocabulary: 262208, maxContext: 131072, kvBytesPerToken: 393216, weightBytes: { bf16: 24400000000, fp8: 12200000000, int4: 6710000000 }, status: 'from-memory' },
  { id: 'google/gemma-3-27b-it', kind: 'llm', params: 27400000000, activeParams: 27400000000, layers: 62, hidden: 5376, kvHeads: 16, vocabulary: 262208, maxContext: 131072, kvBytesPerToken: 507904, weightBytes: { bf16: 54800000000, fp8: 27400000000, int4: 15070000000 }, status: 'partly-from-memory' },
  { id: 'microsoft/Phi-3-mini-4k-instruct', kind: 'llm', params: 3820000000, activeParams: 3820000000, layers: 32, hidden: 3072, kvHeads: 32, vocabulary: 32064, maxContext: 4096, kvBytesPerToken: 393216, weightBytes: { bf16: 7640000000, fp8: 3820000000, int4: 2101000000 }, status: 'from-memory' },
  { id: 'microsoft/phi-4', kind: 'llm', params: 14660000000, activeParams: 14660000000, layers: 40, hidden: 5120, kvHeads: 10, vocabulary: 100352, maxContext: 16384, kvBytesPerToken: 204800, weightBytes: { bf16: 29320000000, fp8: 14660000000, int4: 8063000000 }, status: 'config-verified' },
  { id: 'deepseek-ai/DeepSeek-V3', kind: 'llm', params: 671000000000, activeParams: 37000000000, layers: 61, hidden: 7168, kvHeads: 1, vocabulary: 129280, maxContext: 163840, kvBytesPerToken: 70272, weightBytes: { fp8: 689000000000, bf16: 1342000000000, int4: 370000000000 }, status: 'config-verified' },
  { id: 'openai/gpt-oss-20b', kind: 'llm', params: 20900000000, activeParams: 3600000000, layers: 24, hidden: 2880, kvHeads: 8, vocabulary: 201088, maxContext: 131072, kvBytesPerToken: 49152, weightBytes: { mxfp4: 13800000000, bf16: 41800000000 }, status: 'config-verified' },
  { id: 'openai/gpt-oss-120b', kind: 'llm', params: 116800000000, activeParams: 5100000000, layers: 36, hidden: 2880, kvHeads: 8, vocabulary: 201088, maxContext: 131072, kvBytesPerToken: 73728, weightBytes: { mxfp4: 65000000000, bf16: 233600000000 }, status: 'config-verified' },
  { id: 'BAAI/bge-small-en-v1.5', kind: 'embedding', params: 33400000, activeParams: 33400000, layers: 12, hidden: 384, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 66800000 }, status: 'from-memory' },
  { id: 'BAAI/bge-base-en-v1.5', kind: 'embedding', params: 109000000, activeParams: 109000000, layers: 12, hidden: 768, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 218000000 }, status: 'from-memory' },
  { id: 'BAAI/bge-large-en-v1.5', kind: 'embedding', params: 335000000, activeParams: 335000000, layers: 24, hidden: 1024, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 670000000 }, status: 'from-memory' },
  { id: 'BAAI/bge-m3', kind: 'embedding', params: 568000000, activeParams: 568000000, layers: 24, hidden: 1024, kvHeads: 1, vocabulary: 0, maxContext: 8192, kvBytesPerToken: 0, weightBytes: { fp16: 1136000000 }, status: 'from-memory' },
  { id: 'intfloat/e5-large-v2', kind: 'embedding', params: 335000000, activeParams: 335000000, layers: 24, hidden: 1024, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 670000000 }, status: 'from-memory' },
  { id: 'intfloat/multilingual-e5-large', kind: 'embedding', params: 560000000, activeParams: 560000000, layers: 24, hidden: 1024, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 1120000000 }, status: 'from-memory' },
  { id: 'intfloat/e5-mistral-7b-instruct', kind: 'embedding', params: 7110000000, activeParams: 7110000000, layers: 32, hidden: 4096, kvHeads: 1, vocabulary: 0, maxContext: 4096, kvBytesPerToken: 0, weightBytes: { bf16: 14220000000 }, status: 'from-memory' },
  { id: 'sentence-transformers/all-MiniLM-L6-v2', kind: 'embedding', params: 22700000, activeParams: 22700000, layers: 6, hidden: 384, kvHeads: 1, vocabulary: 0, maxContext: 256, kvBytesPerToken: 0, weightBytes: { fp16: 45400000 }, status: 'from-memory' },
  { id: 'BAAI/bge-reranker-base', kind: 'reranker', params: 278000000, activeParams: 278000000, layers: 12, hidden: 768, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 556000000 }, status: 'from-memory' },
  { id: 'BAAI/bge-reranker-large', kind: 'reranker', params: 560000000, activeParams: 560000000, layers: 24, hidden: 1024, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 1120000000 }, status: 'from-memory' },
  { id: 'BAAI/bge-reranker-v2-m3', kind: 'reranker', params: 568000000, activeParams: 568000000, layers: 24, hidden: 1024, kvHeads: 1, vocabulary: 0, maxContext: 8192, kvBytesPerToken: 0, weightBytes: { fp16: 1136000000 }, status: 'from-memory' },
  { id: 'cross-encoder/ms-marco-MiniLM-L-6-v2', kind: 'reranker', params: 22700000, activeParams: 22700000, layers: 6, hidden: 384, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 45400000 }, status: 'from-memory' },
  { id: 'google-bert/bert-base-uncased', kind: 'classifier', params: 110000000, activeParams: 110000000, layers: 12, hidden: 768, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 220000000 }, status: 'from-memory' },
  { id: 'google-bert/bert-large-uncased', kind: 'classifier', params: 335000000, activeParams: 335000000, layers: 24, hidden: 1024, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 670000000 }, status: 'from-memory' },
  { id: 'distilbert/distilbert-base-uncased-finetuned-sst-2-english', kind: 'classifier', params: 67000000, activeParams: 67000000, layers: 6, hidden: 768, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 134000000 }, status: 'from-memory' },
  { id: 'FacebookAI/roberta-large-mnli', kind: 'classifier', params: 355000000, activeParams: 355000000, layers: 24, hidden: 1024, kvHeads: 1, vocabulary: 0, maxContext: 512, kvBytesPerToken: 0, weightBytes: { fp16: 710000000 }, status: 'from-memory' },
];
