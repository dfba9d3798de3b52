import { expect, test } from '@jest/globals';
import { FailureWatch } from './failure-watch.js';

const metrics = (backend: number, other: number) => [
  '# TYPE nv_inference_request_failure counter', `nv_inference_request_failure{model="model",reason="OTHER",version="1"} ${other}`, `nv_inference_request_failure{model="model",reason="BACKEND",version="1"} ${backend}`, '',
].join('\n');

test('failures of the backend that are new, and no others, ask for a closer look', () => {
  const watch = new FailureWatch();
  expect(watch.hasNew('http://a', metrics(0, 0))).toBe(false);
  expect(watch.hasNew('http://a', metrics(0, 5))).toBe(false);
  expect(watch.hasNew('http://a', metrics(2, 5))).toBe(true);
  expect(watch.hasNew('http://a', metrics(2, 5))).toBe(false);
  expect(watch.hasNew('http://b', metrics(2, 5))).toBe(true);
});

test('an engine that was found dead stays suspect until it is found well', () => {
  const watch = new FailureWatch();
  expect(watch.hasNew('http://a', metrics(1, 0))).toBe(true);
  watch.keep('http://a');
  expect(watch.hasNew('http://a', metrics(1, 0))).toBe(true);
  expect(watch.hasNew('http://a', metrics(1, 0))).toBe(false);
});
