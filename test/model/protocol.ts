import { consumerSteps } from './consumer.js';
import { encodeWorld } from './encoding.js';
import { explore, type Exploration, type Model } from './explorer.js';
import { adminSteps, buyerSteps, lossSteps, operatorSteps, processSteps } from './outside.js';
import { passSteps } from './pass.js';
import { isSettled, properties } from './properties.js';
import { rebuildSteps } from './rebuild.js';
import {
  initialWorld,
  NO_STOCK,
  NONE,
  noBudgets,
  type Budgets,
  type Configuration,
  type Redis,
  type World,
} from './world.js';

/** The smallest system: what a configuration does not name is absent. */
const smallest: Configuration = {
  buyers: 2,
  purchasesPerBuyer: 1,
  units: 1,
  consumers: 1,
  reconcilers: 0,
  passes: 0,
  admins: 0,
  published: true,
  budgets: noBudgets,
  losses: [],
  keyLosses: [],
  switches: new Set(),
};

export type Sizes = Partial<Omit<Configuration, 'budgets'>> & { readonly budgets?: Partial<Budgets> };

export const configure = (sizes: Sizes): Configuration => ({
  ...smallest,
  ...sizes,
  budgets: { ...noBudgets, ...sizes.budgets },
});

/** The protocol as a model in the given size. */
export function protocolModel(config: Configuration): Model<World> {
  return {
    initial: initialWorld(config),
    steps: (world) => [
      ...buyerSteps(config, world),
      ...consumerSteps(config, world),
      ...rebuildSteps(config, world),
      ...passSteps(config, world),
      ...adminSteps(config, world),
      ...processSteps(config, world),
      ...operatorSteps(config, world),
      ...lossSteps(config, world),
    ],
    encode: (world) => encodeWorld(config, world),
    properties: properties(config),
    settled: { property: 'P3 ENDS', holds: (world) => isSettled(config, world) },
    describe,
  };
}

/** Explores every interleaving of the protocol in the given size. */
export const exploreProtocol = (sizes: Sizes, maxStates?: number): Exploration =>
  explore(protocolModel(configure(sizes)), maxStates);

const orderText = (order: number): string => (order === NONE ? '-' : String(order));

function describeRedis({ epoch, onSale, stock, marks, stream, dead }: Readonly<Redis>): string {
  const entries = stream.map(({ id, order, state }) => `${id}:order ${order} ${state}`).join(', ');
  const sale = onSale ? `stock ${stock === NO_STOCK ? 'missing' : stock}` : 'not on sale';
  return `epoch ${epoch.kind}, ${sale}, marks [${marks.map(orderText).join(' ')}], stream [${entries}], dead [${dead.map(({ order }) => order).join(' ')}]`;
}

function describe(world: World): string {
  const { outcomes, stock } = world.database;
  const hands = world.consumers.map(
    ({ items, fresh }) =>
      `${items.map(({ order, todo }) => `${todo} ${order}`).join(', ') || 'idle'}${fresh ? '' : ' (old number)'}`,
  );
  return `${describeRedis(world.redis)}; database stock ${stock}, orders [${outcomes.join(' ')}]; consumers: ${hands.join(' / ')}`;
}
