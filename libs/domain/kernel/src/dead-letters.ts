/** An event that a consumer could not take. */
export interface DeadLetterEntry {
  readonly id: number;
  readonly stream: string;
  readonly sequence: number;
  readonly subject: string;
  readonly consumer: string;
  readonly reason: string;
  readonly deliveries: number;
  /** ISO 8601. */
  readonly deadAt: string;
}

export type RedriveResult =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'rebuild-needed'; readonly consumer: string }
  | { readonly kind: 'not-found' };

/** What operators do with events that could not be handled. */
export interface DeadLetterQueue {
  /** Oldest first, from letter `fromId`. */
  list(options?: { readonly consumer?: string | undefined; readonly fromId?: number | undefined; readonly limit?: number | undefined }): Promise<readonly DeadLetterEntry[]>;
  /** Hands the stored event to its consumer once more; the letter goes when that succeeded. */
  redrive(id: number): Promise<RedriveResult>;
}
