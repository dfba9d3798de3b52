/** What a gateway remembers of its newest requests, by their ids; the oldest goes first. */
export class RequestBook<Noted> {
  private readonly noted = new Map<string, Noted>();

  constructor(private readonly requestsMax: number) {}

  note(requestId: string, noted: Noted): void {
    this.noted.set(requestId, noted);
    if (this.noted.size <= this.requestsMax) return;
    for (const oldest of this.noted.keys()) {
      this.noted.delete(oldest);
      return;
    }
  }

  find(requestId: string): Noted | undefined {
    return this.noted.get(requestId);
  }
}
