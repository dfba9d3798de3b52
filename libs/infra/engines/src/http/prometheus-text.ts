import type { MetricSample } from '@penstock/domain-serving';

const SAMPLE_PATTERN = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;

/** The samples of Prometheus text, with their labels as written. Lines that are not samples are passed over. */
export function parsePrometheusText(text: string): readonly MetricSample[] {
  const samples: MetricSample[] = [];
  for (const line of text.split('\n')) {
    const match = line.startsWith('#') ? null : SAMPLE_PATTERN.exec(line.trim());
    const value = Number(match?.[3]);
    if (match?.[1] !== undefined && !Number.isNaN(value)) samples.push({ name: match[1], value, ...(match[2] === undefined ? {} : { labels: match[2] }) });
  }
  return samples;
}
