import { MemoryEventLog } from './memory-event-log.js';
import { eventLogSuite } from './event-log-suite.js';

eventLogSuite('memory', () => Promise.resolve({ log: new MemoryEventLog(), close: () => Promise.resolve() }));
