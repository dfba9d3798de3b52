import { MemoryObjectStore } from './memory-object-store.js';
import { objectStoreSuite } from './object-store-suite.js';

objectStoreSuite('MemoryObjectStore', async () => ({ store: new MemoryObjectStore(), close: async () => undefined }));
