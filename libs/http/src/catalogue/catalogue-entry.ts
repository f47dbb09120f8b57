/** A text in both languages that answers speak. */
export interface Bilingual {
  readonly en: string;
  readonly zh: string;
}

/** What one error code stands for: the answer's status and texts, and what its page under /docs/errors tells. */
export interface CatalogueEntry {
  readonly status: number;
  readonly title: Bilingual;
  readonly detail: Bilingual;
  readonly cause: string;
  readonly remedy: string;
  /** Sent as Retry-After and `retryAfter` unless the answer states another number. */
  readonly retryAfterSeconds?: number;
  /** Further members that an example answer shows. */
  readonly example?: Readonly<Record<string, unknown>>;
}
