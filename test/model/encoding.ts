import { serverIdentity } from './register-scripts.js';
import { has, having, NONE } from './world.js';
import type { Configuration, Consumer, EntryState, Order, Orders, Outcome, Redis, World } from './world.js';

const stages = new Map<string, number>();
/** A small number for each word, the same throughout the process. */
const code = (word: string): number => {
  const known = stages.get(word);
  if (known !== undefined) return known;
  stages.set(word, stages.size);
  return stages.size - 1;
};

/** Fresh values (tokens, identities) are told apart by equality only: they are numbered in the order in which they are met. */
class Numbering {
  private readonly met: number[] = [];
  of(value: number): number {
    if (value === NONE) return 0;
    const at = this.met.indexOf(value);
    return at >= 0 ? at + 1 : this.met.push(value);
  }
  /** 0 for a value that was not met: it can equal nothing any more. */
  ifMet(value: number): number {
    return this.met.indexOf(value) + 1;
  }
}

/**
 * The world as a string, equal for worlds that behave alike: entry ids by rank, fresh values by first use, processes of one kind sorted,
 * and of the two ways to name two buyers the one that their own lots suggest (where these are equal: the smaller string).
 */
export function encodeWorld(config: Configuration, world: World): string {
  if (config.buyers !== 2) return encodeNamed(config, world, false);
  const [first, second] = [lotOf(config, world, 0), lotOf(config, world, 1)];
  if (first !== second) return encodeNamed(config, world, first < second);
  const [straight, swapped] = [encodeNamed(config, world, false), encodeNamed(config, world, true)];
  return straight < swapped ? straight : swapped;
}

/** A number for what became of a buyer's purchases. */
function lotOf({ purchasesPerBuyer }: Configuration, world: World, buyer: number): number {
  const base = buyer * purchasesPerBuyer;
  const mark = world.redis.marks[buyer] as Order;
  let lot = mark === NONE ? 0 : mark - base + 1;
  for (let order = base; order < base + purchasesPerBuyer; order += 1) {
    const outcome = world.database.outcomes[order] as Outcome;
    lot = lot * 4 + outcomeNumbers[outcome];
    lot = lot * 4 + (has(world.answered, order) ? 2 : 0) + (outcome === 'NONE' && has(world.erased, order) ? 1 : 0);
  }
  return lot;
}

const outcomeNumbers: Record<Outcome, number> = { NONE: 0, ACTIVE: 1, REJECTED: 2 };

function namesOf({ purchasesPerBuyer }: Configuration, world: World, swap: boolean): Names {
  const order = (value: Order): number =>
    value === NONE ? 0 : 1 + (swap ? (value + purchasesPerBuyer) % (2 * purchasesPerBuyer) : value);
  const low = (1 << purchasesPerBuyer) - 1;
  const set = (orders: Orders): number =>
    swap ? ((orders & low) << purchasesPerBuyer) | (orders >> purchasesPerBuyer) : orders;
  return {
    order,
    swap,
    set,
    identities: new Numbering(),
    tokens: new Numbering(),
    versions: new Numbering(),
    rank: ranks(world),
  };
}

function encodeNamed(config: Configuration, world: World, swap: boolean): string {
  const names = namesOf(config, world, swap);
  const out: number[] = Object.values(world.left);
  names.identities.of(serverIdentity(config, world));
  encodeRedis(out, world.redis, names);
  if (world.snapshot !== undefined) encodeRedis(out, world.snapshot, names);
  // Versions are met only so that a pass can be told whether what it read still stands.
  for (const redis of [world.redis, world.snapshot]) names.versions.of(redis?.version ?? NONE);
  out.push(names.identities.of(config.switches.has('epoch-cached-by-process') ? world.named : NONE));
  if (config.losses.includes('failback')) out.push(names.identities.of(world.run), names.identities.of(world.home));
  const { outcomes, stock, voucherKnown } = world.database;
  out.push(stock, (voucherKnown ? 1 : 0) + (world.publishing ? 2 : 0), names.order(world.causeless));
  let [active, rejected] = [0, 0];
  outcomes.forEach((outcome, order) => {
    if (outcome === 'ACTIVE') active = having(active, order);
    if (outcome === 'REJECTED') rejected = having(rejected, order);
  });
  // Once an order is decided it does not matter any more whether it was erased or discarded.
  const undecided = ~(active | rejected);
  for (const orders of [active, rejected, world.answered, world.erased & undecided, world.excused & undecided])
    out.push(names.set(orders));
  return [
    text(out),
    sorted(world.consumers.map((consumer) => encodeConsumer(consumer, names))),
    sorted(world.reconcilers.map((reconciler) => encodeReconciler(reconciler, names))),
    sorted(world.passes.map((pass) => encodePass(pass, names))),
    sorted(world.admins.map((admin) => text([code(admin.stage), names.order(admin.order)]))),
  ].join('|');
}

const sorted = (codes: string[]): string => (codes.length < 2 ? (codes[0] ?? '') : codes.sort().join('/'));

interface Names {
  readonly swap: boolean;
  order(value: Order): number;
  set(orders: Orders): number;
  readonly identities: Numbering;
  readonly tokens: Numbering;
  readonly versions: Numbering;
  readonly rank: ReadonlyMap<number, number>;
}

const pushByBuyer = (out: number[], orders: readonly Order[], { swap, order }: Names): void => {
  if (swap) for (let buyer = orders.length - 1; buyer >= 0; buyer -= 1) out.push(order(orders[buyer] as Order));
  else for (const value of orders) out.push(order(value));
};

/** Ids of entries that Redis, or the kept copy, still holds; others can never be met again and count as 0. */
function ranks({ redis, snapshot }: World): Map<number, number> {
  const rank = new Map<number, number>();
  if (snapshot === undefined || snapshot.stream.length === 0) {
    for (const { id } of redis.stream) rank.set(id, rank.size + 1);
    return rank;
  }
  const ids = [...redis.stream, ...snapshot.stream].map(({ id }) => id);
  for (const id of ids.sort((a, b) => a - b)) if (!rank.has(id)) rank.set(id, rank.size + 1);
  return rank;
}

const text = (numbers: readonly number[]): string => String.fromCharCode(...numbers.map((number) => number + 200));

const entryStates: Record<EntryState, number> = { NEW: 1, PENDING: 2, ACKED: 3, GONE: 4 };

function encodeRedis(out: number[], redis: Readonly<Redis>, names: Names): void {
  const { epoch, onSale, stock, marks, stream, dead } = redis;
  out.push(code(epoch.kind), names.identities.of(epoch.server), names.tokens.of(epoch.token), onSale ? 1 : 0, stock);
  pushByBuyer(out, marks, names);
  out.push(stream.length);
  for (const { id, order, state } of stream)
    out.push(names.rank.get(id) as number, names.order(order), entryStates[state]);
  // Of a letter's entry only this is asked: was another letter written for the same one?
  const letters = dead.map(
    ({ entry, order }, at) => names.order(order) * 2 + (dead.findIndex((other) => other.entry === entry) < at ? 1 : 0),
  );
  out.push(dead.length, ...letters.sort());
}

function encodeConsumer({ fresh, items, oldestPending }: Consumer, names: Names): string {
  const out = [fresh ? 1 : 0];
  if (oldestPending !== undefined) out.push(oldestPending === NONE ? 1 : 2 + (names.rank.get(oldestPending) ?? 0));
  for (const { id, order, todo } of items) out.push(names.rank.get(id) ?? 0, names.order(order), code(todo));
  return text(out);
}

function encodeReconciler(reconciler: World['reconcilers'][number], names: Names): string {
  const { stage, token, marks, onTheWay, plan, countRead } = reconciler;
  if (stage === 'IDLE') return '';
  const out = [code(stage), names.tokens.ifMet(token), names.set(onTheWay), countRead];
  pushByBuyer(out, marks, names);
  pushByBuyer(out, plan, names);
  return text(out);
}

function encodePass(
  { stage, marks, onTheWay, repairs, version, drift, driftFoundBefore }: World['passes'][number],
  names: Names,
): string {
  const out = [code(stage), names.set(onTheWay), names.versions.ifMet(version), drift, driftFoundBefore];
  pushByBuyer(out, marks, names);
  for (const { kind, order, instead, difference } of repairs)
    out.push(code(kind), names.order(order), names.order(instead), difference);
  return text(out);
}
