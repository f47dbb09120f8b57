import { buyerOf } from './register-scripts.js';
import {
  has,
  NONE,
  type Configuration,
  type Consumer,
  type Item,
  type Order,
  type Outcome,
  type World,
} from './world.js';

/** Each function is one committed transaction. A transaction that rolls back is the same as none. */

const activeOrderOf = (config: Configuration, world: World, buyer: number): Order =>
  world.database.outcomes.findIndex((outcome, order) => outcome === 'ACTIVE' && buyerOf(config, order) === buyer);

/**
 * createOrders: every order of the batch that is still to be stored, under the fence. It sets what is to be done next with each.
 * Ids that are known come first, then the voucher, then the buyer's other active order, then the guarded stock.
 */
export function createOrders(config: Configuration, world: World, consumer: Consumer): void {
  const stale = !consumer.fresh && !config.switches.has('no-fence');
  const toStore = consumer.items.filter((item) => item.todo === 'STORE');
  // A conflict target names the partial index only: a rejected row with the same id then raises, and the whole batch rolls back.
  const raises = toStore.some((item) => world.database.outcomes[item.order] === 'REJECTED');
  if (!stale && raises && config.switches.has('conflict-target')) return;
  const todo = new Map<Item, Item['todo']>();
  for (const item of toStore.sort((a, b) => a.order - b.order))
    todo.set(item, stale ? 'FIND' : storeOne(config, world, item.order));
  consumer.items = consumer.items.map((item) => ({ ...item, todo: todo.get(item) ?? item.todo }));
  consumer.fresh ||= stale;
}

function storeOne(config: Configuration, world: World, order: Order): Item['todo'] {
  const { database } = world;
  if (database.outcomes[order] === 'ACTIVE') return 'ACK';
  if (database.outcomes[order] === 'REJECTED') return config.switches.has('done-without-release') ? 'ACK' : 'RELEASE';
  if (!database.voucherKnown) return 'DEAD_LETTER';
  const refused = activeOrderOf(config, world, buyerOf(config, order)) !== NONE || database.stock <= 0;
  if (refused) return config.switches.has('release-before-record') ? 'RELEASE_FIRST' : 'REJECT';
  database.stock -= 1;
  decide(world, order, 'ACTIVE');
  return 'ACK';
}

function decide(world: World, order: Order, outcome: Outcome): void {
  world.database.outcomes = world.database.outcomes.with(order, outcome);
}

/** rejectOrder: the primary key decides against a row that is there. True where the order is rejected (now or before). */
export function rejectOrder(config: Configuration, world: World, order: Order): boolean {
  const { database } = world;
  if (database.outcomes[order] === 'ACTIVE') return false;
  if (database.outcomes[order] === 'NONE') {
    decide(world, order, 'REJECTED');
    const operatorActed = world.left.stockZeroings < config.budgets.stockZeroings;
    const caused = operatorActed || has(world.excused, order);
    if (!caused) world.causeless = order;
  }
  return true;
}

/** raiseEpochNumber: from now on no batch that was read under an older number is stored. */
export function raiseEpochNumber(world: World): void {
  world.consumers = world.consumers.map((consumer) => ({ ...consumer, fresh: false }));
}
