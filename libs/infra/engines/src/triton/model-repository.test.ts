import { expect, test } from '@jest/globals';
import { configText } from './model-repository.js';
import { metricsUrlOf } from './triton-metrics.js';

const options = { folder: '/repository', onnxFile: '/models/a "b" \\ ü.onnx', threads: 2, instances: 3, batchMax: 0, batchDelayMicroseconds: 5, queueMax: 7 };

test('a path of whatever characters stays one value', () => {
  expect(configText(options)).toContain(String.raw`parameters { key: "onnx" value { string_value: "/models/a \042b\042 \134 \303\274.onnx" } }`);
});

test('requests are put together only where it is asked for', () => {
  expect(configText(options)).not.toContain('dynamic_batching');
  expect(configText({ ...options, batchMax: 8 })).toContain('dynamic_batching { max_queue_delay_microseconds: 5 default_queue_policy { max_queue_size: 7 } }');
});

test('metrics are two ports on, as Triton has it', () => {
  expect(metricsUrlOf('http://10.0.0.5:8000')).toBe('http://10.0.0.5:8002/metrics');
  expect(metricsUrlOf('http://10.0.0.5:65535')).toBe('http://10.0.0.5:65533/metrics');
});
