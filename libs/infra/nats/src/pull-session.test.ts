import { expect, test } from '@jest/globals';
import { readDelivery } from './pull-session.js';

const delivery = { deliveries: 2, sequence: 1_234_567, consumerSequence: 89, pending: 10 };

test.each([
  ['version 1', '$JS.ACK.EV_USAGE.tail_x.2.1234567.89.1764417600000000000.10'],
  ['version 2', '$JS.ACK._.accHash.EV_USAGE.tail_x.2.1234567.89.1764417600000000000.10.t0ken'],
])('reads the position of a delivery: %s', (_name, reply) => {
  expect(readDelivery(reply)).toEqual(delivery);
});

test.each([undefined, '', '_INBOX.a.b', '$JS.API.INFO'])('%p is not a delivery', (reply) => {
  expect(readDelivery(reply)).toBeUndefined();
});
