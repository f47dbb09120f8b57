/** A script answered something that its contract does not know: a defect, or another version's script under the same name. */
export class UnknownReplyError extends Error {
  readonly code = 'UNKNOWN_REPLY';

  constructor(script: string, reply: unknown) {
    super(`${script} answered what it must not: ${JSON.stringify(reply)?.slice(0, 200)}`);
    this.name = 'UnknownReplyError';
  }
}

/** Reads the reply `{word, ...}` of one script; whatever does not fit throws UnknownReplyError. */
export class WordReply {
  readonly word: string;
  private readonly parts: readonly unknown[];

  constructor(
    private readonly script: string,
    private readonly reply: unknown,
  ) {
    this.parts = Array.isArray(reply) ? (reply as unknown[]) : [reply];
    const word = this.parts[0];
    if (typeof word !== 'string') throw this.unknown();
    this.word = word;
  }

  /** The part at `index` (0 is the word) as a string. */
  text(index: number): string {
    const part = this.parts[index];
    if (typeof part !== 'string') throw this.unknown();
    return part;
  }

  /** The part at `index` as a whole number. */
  number(index: number): number {
    const number = wholeNumber(this.parts[index]);
    if (number === undefined) throw this.unknown();
    return number;
  }

  /** All parts from `index` on, as strings. */
  texts(index: number): string[] {
    return this.parts.slice(index).map((_, at) => this.text(index + at));
  }

  unknown(): UnknownReplyError {
    return new UnknownReplyError(this.script, this.reply);
  }
}

/** The safe whole number that a reply's part spells, or undefined. */
export function wholeNumber(part: unknown): number | undefined {
  if (typeof part === 'number') return Number.isSafeInteger(part) ? part : undefined;
  if (typeof part !== 'string' || !/^-?[0-9]{1,16}$/.test(part)) return undefined;
  const number = Number(part);
  return Number.isSafeInteger(number) ? number : undefined;
}
