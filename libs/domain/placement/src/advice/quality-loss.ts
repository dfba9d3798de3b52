/** What somebody measured of answers at a lower precision, beside those at full precision. */
export interface QualityFinding {
  /** Percent of the score that is lost; 0 where none was. */
  readonly lossPercent: number;
  readonly benchmark: string;
  readonly source: string;
}

interface Row extends QualityFinding {
  /** The beginning of the model's name. */
  readonly model: RegExp;
  readonly precision: string;
}

const CARD = 'model card of';

/** Published findings, the most particular first. Another model, language or task may lose more: evaluate before a change. */
const ROWS: readonly Row[] = [
  { model: /Llama-3\.1-8B/, precision: 'int4', lossPercent: 1.1, benchmark: 'OpenLLM v1 (3.9 on v2)', source: `${CARD} Meta-Llama-3.1-8B-Instruct-quantized.w4a16` },
  { model: /Llama-3\.[13]-70B/, precision: 'int4', lossPercent: 0.6, benchmark: 'OpenLLM v1 (2.6 on v2)', source: `${CARD} Meta-Llama-3.1-70B-Instruct-quantized.w4a16` },
  { model: /Llama-3\.1-405B/, precision: 'int4', lossPercent: 0.7, benchmark: 'OpenLLM v1', source: `${CARD} Meta-Llama-3.1-405B-Instruct-quantized.w4a16` },
  { model: /Llama-3\.1-8B/, precision: 'int8', lossPercent: 0, benchmark: 'OpenLLM v1 and v2', source: `${CARD} Meta-Llama-3.1-8B-Instruct-quantized.w8a8` },
  { model: /Llama-3\.3-70B/, precision: 'int8', lossPercent: 0.6, benchmark: 'OpenLLM v1', source: `${CARD} Llama-3.3-70B-Instruct-quantized.w8a8` },
  { model: /Llama-3\.[13]-(8B|70B|405B)/, precision: 'fp8', lossPercent: 0, benchmark: 'academic and real-world tasks', source: 'Kurtic et al., ACL 2025, arXiv 2411.02355' },
];

/** What was published of the model at the precision; undefined where nobody published anything of it. */
export function qualityFinding(modelId: string, precision: string): QualityFinding | undefined {
  const row = ROWS.find((one) => one.precision === precision && one.model.test(modelId));
  return row === undefined ? undefined : { lossPercent: row.lossPercent, benchmark: row.benchmark, source: row.source };
}
