/** Triton's own defaults lie so far apart (8000 and 8002); the engines that are started here keep that. */
const METRICS_PORT_OFFSET = 2;
const PORT_MAX = 65_535;

/** The port of Triton's metrics, which are not on the one it serves on. */
export function metricsPortOf(port: number): number {
  return port + METRICS_PORT_OFFSET <= PORT_MAX ? port + METRICS_PORT_OFFSET : port - METRICS_PORT_OFFSET;
}

export function metricsUrlOf(url: string): string {
  const metrics = new URL('/metrics', url);
  metrics.port = String(metricsPortOf(Number(metrics.port === '' ? (metrics.protocol === 'https:' ? 443 : 80) : metrics.port)));
  return metrics.href;
}
