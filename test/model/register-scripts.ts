import { having, NONE, NO_STOCK, type Configuration, type EntryState, type Order, type World } from './world.js';

/**
 * Each function is one Lua script of the sale register: atomic, and applied to a world that the step owns. They decide by what is
 * in Redis alone; what is noted in `answered` and `erased` is for the properties only.
 */

export const buyerOf = (config: Configuration, order: Order): number => Math.floor(order / config.purchasesPerBuyer);

export const markCount = (world: World): number =>
  world.redis.marks.reduce((n, mark) => n + (mark === NONE ? 0 : 1), 0);

/** The identity of the server's data history, as the script itself reads it. */
export const serverIdentity = (config: Configuration, world: World): number =>
  config.switches.has('epoch-by-run-id') ? world.run : world.replid;

/** What admit, publish and readmit ask first: was this data history reconciled and opened? */
export function isOpen(config: Configuration, world: World): boolean {
  const expected = config.switches.has('epoch-cached-by-process') ? world.named : serverIdentity(config, world);
  return world.redis.epoch.kind === 'OPEN' && world.redis.epoch.server === expected;
}

/** Open, on sale, and stock + marks = units: only then a right is given away. */
export function isSelling(config: Configuration, world: World): boolean {
  const { redis } = world;
  return (
    isOpen(config, world) && redis.onSale && redis.stock !== NO_STOCK && redis.stock + markCount(world) === config.units
  );
}

export function append(world: World, order: Order): void {
  world.redis.stream = [...world.redis.stream, { id: (world.clock += 1), order, state: 'NEW' }];
}

/** admit.lua and readmit.lua: true where the purchase got the unit, the mark and the entry. */
export function admit(config: Configuration, world: World, order: Order): boolean {
  const { redis } = world;
  const buyer = buyerOf(config, order);
  if (!isSelling(config, world) || redis.marks[buyer] !== NONE || redis.stock <= 0) return false;
  append(world, order);
  redis.marks = redis.marks.with(buyer, order);
  redis.stock -= 1;
  world.answered = having(world.answered, order);
  world.erased &= ~having(0, order);
  return true;
}

/** Equal versions under one epoch value mean that no unit was freed and no mark was set in between. */
export function raiseVersion(world: World): void {
  world.redis.version = world.clock += 1;
}

/** release.lua: gives unit and mark back while the mark holds that very order. It obeys no epoch and creates no key. */
export function release(config: Configuration, world: World, order: Order): void {
  const { redis } = world;
  const buyer = buyerOf(config, order);
  if (redis.marks[buyer] !== order && !config.switches.has('release-without-mark')) return;
  raiseVersion(world);
  redis.marks = redis.marks.with(buyer, NONE);
  if (redis.stock !== NO_STOCK) redis.stock += 1;
}

/** publish.lua: puts on sale where open and nothing is there. */
export function publish(config: Configuration, world: World): void {
  const { redis } = world;
  if (!isOpen(config, world) || redis.onSale || redis.stock !== NO_STOCK) return;
  redis.onSale = true;
  redis.stock = config.units;
  raiseVersion(world);
}

function trimBelow(world: World, bound: number): void {
  world.redis.stream = world.redis.stream.flatMap((entry) => {
    if (entry.id >= bound || entry.state === 'GONE') return [entry];
    return entry.state === 'PENDING' ? [{ ...entry, state: 'GONE' as const }] : [];
  });
}

export const oldestPending = (world: World): number =>
  world.redis.stream.find((entry) => entry.state === 'PENDING' || entry.state === 'GONE')?.id ?? NONE;

const afterLastDelivered = (world: World): number =>
  world.redis.stream.reduce((bound, entry) => (entry.state === 'NEW' ? bound : entry.id + 1), 0);

/** XACK: 1 (true) where the group's pending list names the entry. */
export function acknowledge(world: World, id: number): boolean {
  const at = world.redis.stream.findIndex((entry) => entry.id === id);
  const entry = world.redis.stream[at];
  if (entry?.state === 'GONE') world.redis.stream = world.redis.stream.toSpliced(at, 1);
  if (entry?.state === 'PENDING') setState(world, at, 'ACKED');
  return entry?.state === 'PENDING' || entry?.state === 'GONE';
}

function setState(world: World, at: number, state: EntryState): void {
  world.redis.stream = world.redis.stream.map((entry, place) => (place === at ? { ...entry, state } : entry));
}

/** The trim part of acknowledge.lua. `pending` is read in the same call, except with the switch `trim-in-two-calls`. */
export function trim(world: World, pending: number): void {
  trimBelow(world, pending === NONE ? afterLastDelivered(world) : pending);
}

/** dead-letter.lua: writes the letter only if its XACK returned 1. */
export function deadLetter(config: Configuration, world: World, id: number, order: Order): void {
  const acknowledged = acknowledge(world, id);
  if (acknowledged || config.switches.has('dead-letter-without-ack'))
    world.redis.dead = [...world.redis.dead, { entry: id, order }];
  trim(world, oldestPending(world));
}

/** The letters of one order are alike to what follows: the first is taken. */
export function removeLetter(world: World, order: Order): boolean {
  const at = world.redis.dead.findIndex((letter) => letter.order === order);
  if (at < 0) return false;
  world.redis.dead = world.redis.dead.toSpliced(at, 1);
  return true;
}

/** redrive.lua: appends again, while the mark holds the order, and removes the letter. */
export function redrive(config: Configuration, world: World, order: Order): void {
  if (world.redis.marks[buyerOf(config, order)] === order && removeLetter(world, order)) append(world, order);
}

/** reappend.lua: appends the entry of a mark that lost it, while the mark holds the order. */
export function reappend(config: Configuration, world: World, order: Order): void {
  if (world.redis.marks[buyerOf(config, order)] === order) append(world, order);
}

/**
 * mark.lua: marks a buyer whose mark was lost; the sum of stock and marks stays. A row is a fact for good; an entry seen on its way is
 * one only as long as no rebuild came between, so for it the sale's version as read is expected.
 */
export function mark(config: Configuration, world: World, order: Order, versionExpected?: number): boolean {
  const { redis } = world;
  const buyer = buyerOf(config, order);
  if (versionExpected !== undefined && versionExpected !== redis.version) return false;
  if (redis.marks[buyer] !== NONE || !redis.onSale || redis.stock === NO_STOCK) return false;
  redis.marks = redis.marks.with(buyer, order);
  redis.stock -= 1;
  raiseVersion(world);
  return true;
}

/** remark.lua: replaces the order that a mark names, while it names the one that was read. */
export function remark(config: Configuration, world: World, from: Order, to: Order): boolean {
  const buyer = buyerOf(config, to);
  if (world.redis.marks[buyer] !== from) return false;
  world.redis.marks = world.redis.marks.with(buyer, to);
  raiseVersion(world);
  return true;
}

/** correct-stock.lua: by the difference, where the script itself finds the very one that was read. */
export function correctStock(config: Configuration, world: World, expected: number): void {
  const { redis } = world;
  if (redis.stock === NO_STOCK || config.units - redis.stock - markCount(world) !== expected) return;
  redis.stock += expected;
  raiseVersion(world);
}

/** What every script of a rebuild asks first: does the key hold this token, for the server that answers now? */
export function holdsToken(config: Configuration, world: World, token: number): boolean {
  const { epoch } = world.redis;
  return epoch.kind === 'RECONCILING' && epoch.token === token && epoch.server === serverIdentity(config, world);
}
