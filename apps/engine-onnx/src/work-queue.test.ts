import { expect, test } from '@jest/globals';
import { QueueFullError, WorkQueue } from './work-queue.js';

test('no more than its slots run, what waits comes in order, and one too many is refused at once', async () => {
  const queue = new WorkQueue(2, 2);
  const order: number[] = [];
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const works = gates.map((gate, index) => queue.run(async () => {
    order.push(index);
    await gate.promise;
    if (index === 0) throw new Error('failed');
    return index;
  }));
  expect([queue.running, queue.waiting, order]).toEqual([2, 2, [0, 1]]);
  await expect(queue.run(async () => 5)).rejects.toThrow(QueueFullError);
  gates[0]?.resolve();
  await expect(works[0]).rejects.toThrow('failed');
  expect([queue.running, queue.waiting, order]).toEqual([2, 1, [0, 1, 2]]);
  for (const gate of gates) gate.resolve();
  expect(await Promise.all(works.slice(1))).toEqual([1, 2, 3]);
  expect([queue.running, queue.waiting]).toEqual([0, 0]);
});
