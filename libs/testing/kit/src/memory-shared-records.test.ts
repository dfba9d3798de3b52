import { MemorySharedRecords } from './memory-shared-records.js';
import { sharedRecordsSuite } from './shared-records-suite.js';

sharedRecordsSuite('Memory', () => Promise.resolve({ records: new MemorySharedRecords(), close: () => Promise.resolve() }));
