import { buyerOf, isOpen, markCount } from './register-scripts.js';
import { has, NONE, type Configuration, type Order, type World } from './world.js';

/** The promises of the design as assertions. Each answers undefined where the state keeps it. */
export type Property =
  'P1 ROWS' | 'P1 RIGHTS' | 'P2 ROWS' | 'P2 RIGHTS' | 'P3 CAUSE' | 'P3 ENDS' | 'SUM' | 'MARKED' | 'LETTERS';

const ordersWhere = (world: World, holds: (order: Order) => boolean): Order[] =>
  world.database.outcomes.map((_, order) => order).filter(holds);

const isActive = (world: World, order: Order): boolean => world.database.outcomes[order] === 'ACTIVE';

/** Answered 202, its traces not lost with Redis, not yet decided by the database: it must be able to become a row. */
export const isAwaited = (world: World, order: Order): boolean =>
  has(world.answered, order) && !has(world.erased, order) && world.database.outcomes[order] === 'NONE';

/** What holds in every state. */
export function properties(config: Configuration): Record<string, (world: World) => string | undefined> {
  const holdsRight = (world: World, order: Order) => isActive(world, order) || isAwaited(world, order);
  const twice = (orders: readonly Order[]) =>
    orders.find((order, at) => orders.findIndex((other) => buyerOf(config, other) === buyerOf(config, order)) !== at);
  const readyForAdmission = (world: World) => isOpen(config, world) && world.redis.onSale;
  const checks: Record<Exclude<Property, 'P3 ENDS'>, (world: World) => string | undefined> = {
    'P1 ROWS': (world) => {
      const rows = ordersWhere(world, (order) => isActive(world, order)).length;
      return rows > config.units ? `${rows} rows, ${config.units} units` : undefined;
    },
    'P1 RIGHTS': (world) => {
      const rights = ordersWhere(world, (order) => holdsRight(world, order));
      return rights.length > config.units ? `orders ${rights.join(', ')} on ${config.units} units` : undefined;
    },
    'P2 ROWS': (world) => {
      const order = twice(ordersWhere(world, (candidate) => isActive(world, candidate)));
      return order === undefined ? undefined : `order ${order} is its buyer's second row`;
    },
    'P2 RIGHTS': (world) => {
      const order = twice(ordersWhere(world, (candidate) => holdsRight(world, candidate)));
      return order === undefined ? undefined : `order ${order} is its buyer's second right`;
    },
    'P3 CAUSE': ({ causeless }) => (causeless === NONE ? undefined : `order ${causeless} was rejected without a cause`),
    SUM: (world) => {
      const sum = world.redis.stock + markCount(world);
      return readyForAdmission(world) && sum !== config.units
        ? `stock + marks = ${sum}, ${config.units} units`
        : undefined;
    },
    MARKED: (world) => {
      if (!readyForAdmission(world)) return undefined;
      const order = ordersWhere(world, (candidate) => holdsRight(world, candidate)).find(
        (candidate) => world.redis.marks[buyerOf(config, candidate)] !== candidate,
      );
      return order === undefined ? undefined : `open, and order ${order} has no mark`;
    },
    LETTERS: ({ redis: { dead } }) => {
      const letter = dead.find(({ entry }, at) => dead.findIndex((other) => other.entry === entry) !== at);
      return letter === undefined ? undefined : `two dead letters for one entry of order ${letter.order}`;
    },
  };
  // Where single keys are lost, sum and marks are broken by the fault itself: admission refuses and the pass must mend them
  // (P3 ENDS).
  const { SUM, MARKED, ...always } = checks;
  return config.keyLosses.length === 0 ? { ...always, SUM, MARKED } : always;
}

/** Everything came to rest as promised: each awaited order has its row or its rejection, unit and mark stand accordingly, all agree. */
export function isSettled(config: Configuration, world: World): boolean {
  const { redis, database } = world;
  const idle =
    world.consumers.every((consumer) => consumer.items.length === 0 && consumer.oldestPending === undefined) &&
    world.admins.every((admin) => admin.stage === 'IDLE') &&
    world.reconcilers.every((reconciler) => reconciler.stage === 'IDLE') &&
    world.passes.every((pass) => pass.stage === 'IDLE');
  const drained = redis.dead.length === 0 && redis.stream.every((entry) => entry.state === 'ACKED');
  const selling = isOpen(config, world) && redis.onSale && redis.stock + markCount(world) === config.units;
  if (!idle || !drained || !selling || !database.voucherKnown) return false;
  const orders = ordersWhere(world, () => true);
  return (
    orders.every((order) => !isAwaited(world, order)) &&
    orders.every((order) => !isActive(world, order) || redis.marks[buyerOf(config, order)] === order) &&
    redis.marks.every((mark) => mark === NONE || isActive(world, mark))
  );
}
