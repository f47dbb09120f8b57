/** What the rush and the stores say after everything settled. Undefined where it could not be looked at. */
export interface RushFacts {
  readonly buyers: number;
  readonly units: number;
  /** Buyers who hold an order by what they heard, and those whose last answer left them in doubt. */
  readonly accepted: number;
  readonly inDoubt: number;
  /** Accepted ids that were given to more than one buyer. */
  readonly sharedIds: number;
  /** Active orders of the voucher in the database. */
  readonly stored: number | undefined;
  /** Accepted orders that are a row of that very buyer, that were rejected on record, and that are neither. */
  readonly found: number | undefined;
  readonly rejected: number | undefined;
  readonly lost: number | undefined;
  /** Buyers with more than one active order. */
  readonly doubleBuyers: number | undefined;
  /** Active orders that no answer named. */
  readonly unheard: number | undefined;
  /** Units left and marks by the register. */
  readonly unitsLeft: number | undefined;
  readonly marks: number | undefined;
  /** Entries undelivered or pending, and dead letters, of the voucher's partition. */
  readonly pending: number | undefined;
  readonly deadLetters: number | undefined;
  /** Differences that the audit names. */
  readonly differences: readonly string[] | undefined;
  /** Buyers who asked again, and those who did not hear the order (or refusal) that is theirs. */
  readonly repeated: number;
  readonly repeatedWrong: number;
  /** Answers that are defects: HTTP 500, answers that are none. */
  readonly defects: number;
}

export interface PromiseKept {
  readonly promise: string;
  /** Undefined: it could not be looked at. */
  readonly kept: boolean | undefined;
  readonly detail: string;
}

/** The promises, each kept, broken, or not looked at. Pure. */
export function judgeRush(facts: RushFacts): PromiseKept[] {
  const { buyers, units, accepted, inDoubt, stored, lost, rejected, unitsLeft, marks, pending, differences } = facts;
  const wanted = Math.min(units, buyers);
  const known = <T>(value: T | undefined, holds: (value: T) => boolean): boolean | undefined =>
    value === undefined ? undefined : holds(value);
  const oversold = known(stored, (rows) => rows <= units);
  const holders = accepted - (rejected ?? 0);
  return [
    {
      promise: 'every unit is sold, and no more',
      kept: accepted === wanted && inDoubt === 0,
      detail: `${accepted} accepted of min(${units} units, ${buyers} buyers)${inDoubt > 0 ? `; ${inDoubt} buyers in doubt` : ''}`,
    },
    {
      promise: 'what was accepted is stored',
      kept: known(stored, (rows) => rows === holders),
      detail: `${show(stored)} stored, ${show(rejected)} rejected on record`,
    },
    { promise: 'nothing accepted is lost', kept: known(lost, (count) => count === 0), detail: `${show(lost)} lost` },
    {
      promise: 'never oversold',
      kept: oversold,
      detail: stored === undefined ? 'not looked at' : `${Math.max(0, stored - units)} oversold`,
    },
    {
      promise: 'one user, one order',
      kept: facts.sharedIds > 0 ? false : known(facts.doubleBuyers, (count) => count === 0 && facts.unheard === 0),
      detail: `${show(facts.doubleBuyers)} buyers with two orders, ${facts.sharedIds} ids given twice, ${show(facts.unheard)} orders nobody heard of`,
    },
    {
      promise: 'stock + marks = units in Redis',
      // Where the marks cannot be seen, those who hold an order stand for them.
      kept: known(unitsLeft, (left) => left + (marks ?? holders) === units && (marks ?? holders) === holders),
      detail: `${show(unitsLeft)} left + ${show(marks)} marks, ${units} units`,
    },
    {
      promise: 'nothing is left on its way',
      kept: known(pending, (count) => count === 0 && facts.deadLetters === 0),
      detail: `${show(pending)} undelivered or pending, ${show(facts.deadLetters)} dead letters`,
    },
    {
      promise: 'Redis, stream and database agree',
      kept: known(differences, (list) => list.length === 0),
      detail:
        differences === undefined
          ? 'not looked at'
          : differences.slice(0, 3).join('; ') || 'the audit finds no difference',
    },
    {
      promise: 'who asks again hears his own order',
      kept: facts.repeated === 0 ? undefined : facts.repeatedWrong === 0,
      detail: `${facts.repeated} asked again, ${facts.repeatedWrong} heard something else`,
    },
    { promise: 'no defect in any answer', kept: facts.defects === 0, detail: `${facts.defects} defects` },
  ];
}

const show = (value: number | undefined): string => (value === undefined ? '?' : String(value));

/** 0: every promise that was looked at is kept. 1: one is broken. */
export const exitCodeOf = (promises: readonly PromiseKept[]): 0 | 1 =>
  promises.some(({ kept }) => kept === false) ? 1 : 0;
