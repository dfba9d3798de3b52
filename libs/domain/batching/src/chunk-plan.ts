import { z } from 'zod';
import type { Line } from './split-lines.js';

/** Lines of one chunk at most: a crash runs at most this many lines again. */
export const CHUNK_LINES_MAX = 50;

/** A chunk is closed once it holds this much input, so that one chunk fits into memory. */
export const CHUNK_BYTES_MAX = 4 * 1024 * 1024;

/** A range of whole lines of the input. */
export const plannedChunk = z.object({
  chunk: z.int().nonnegative(),
  /** Number of its first line, from 1. */
  firstLine: z.int().positive(),
  /** Requests in it: its lines without blank ones. */
  requests: z.int().positive(),
  byteStart: z.int().nonnegative(),
  /** Exclusive. */
  byteEnd: z.int().positive(),
});
export type PlannedChunk = z.infer<typeof plannedChunk>;

/** How the input of one job is cut. It is written once, before the job starts, and every worker keeps to it. */
export const chunkPlan = z.object({
  version: z.literal(1),
  total: z.int().positive(),
  modelName: z.string(),
  chunks: z.array(plannedChunk).min(1),
});
export type ChunkPlan = z.infer<typeof chunkPlan>;

/** Cuts lines into chunks while they pass. */
export class ChunkPlanner {
  private readonly chunks: PlannedChunk[] = [];
  private open: PlannedChunk | undefined;

  /** Takes the next line that holds a request. */
  add(line: Line): void {
    if (this.open === undefined) {
      this.open = { chunk: this.chunks.length, firstLine: line.number, requests: 1, byteStart: line.byteStart, byteEnd: line.byteEnd };
    } else {
      this.open = { ...this.open, requests: this.open.requests + 1, byteEnd: line.byteEnd };
    }
    const isFull = this.open.requests >= CHUNK_LINES_MAX || this.open.byteEnd - this.open.byteStart >= CHUNK_BYTES_MAX;
    if (isFull) this.closeChunk();
  }

  finish(): readonly PlannedChunk[] {
    if (this.open !== undefined) this.closeChunk();
    return this.chunks;
  }

  private closeChunk(): void {
    if (this.open !== undefined) this.chunks.push(this.open);
    this.open = undefined;
  }
}
