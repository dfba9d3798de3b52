export * from './highs-optimiser.js';
