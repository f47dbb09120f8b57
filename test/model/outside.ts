import { rejectOrder } from './database-transactions.js';
import type { Step } from './explorer.js';
import { ordersOf } from './rebuild.js';
import {
  admit,
  append,
  buyerOf,
  isSelling,
  publish,
  redrive,
  release,
  removeLetter,
  serverIdentity,
} from './register-scripts.js';
import {
  cloneWorld,
  has,
  having,
  NONE,
  NO_STOCK,
  type Admin,
  type Budgets,
  type Configuration,
  type Redis,
  type World,
} from './world.js';

type WorldStep = Step<World>;

const step = (world: World, label: string, change: (next: World) => void, fault = false): WorldStep => {
  const next = cloneWorld(world);
  change(next);
  return { label, next, fault };
};

const spend = (world: World, budget: keyof Budgets, label: string, change: (next: World) => void): WorldStep[] =>
  world.left[budget] === 0
    ? []
    : [
        step(
          world,
          label,
          (next) => {
            next.left = { ...next.left, [budget]: next.left[budget] - 1 };
            change(next);
          },
          true,
        ),
      ];

/** Buyers. A purchase that is refused changes nothing, so only those that are accepted are steps. */
export function buyerSteps(config: Configuration, world: World): WorldStep[] {
  if (!isSelling(config, world)) return [];
  return world.redis.marks.flatMap((mark, buyer) => {
    if (mark !== NONE || world.redis.stock <= 0) return [];
    const first = buyer * config.purchasesPerBuyer;
    const own = Array.from({ length: config.purchasesPerBuyer }, (_, nth) => first + nth);
    const fresh = own.find((order) => !has(world.answered, order));
    const buys =
      fresh === undefined
        ? []
        : [step(world, `buyer ${buyer} is accepted as order ${fresh}`, (next) => admit(config, next, fresh), true)];
    const again = own
      .filter((order) => has(world.answered, order))
      .flatMap((order) =>
        spend(world, 'resends', `the call of order ${order} is executed again`, (next) => admit(config, next, order)),
      );
    return [...buys, ...again];
  });
}

/** Publisher, and the process that knows the epoch by heart (a switch). */
export function processSteps(config: Configuration, world: World): WorldStep[] {
  const steps: WorldStep[] = [];
  if (world.publishing)
    steps.push(
      step(world, 'the publisher calls publish', (next) => {
        publish(config, next);
        next.publishing = false;
      }),
    );
  // A repeated creation asks for a rebuild where the sale is missing; it must not publish as if nobody had ever bought.
  if (config.switches.has('publish-on-repeat'))
    steps.push(
      ...spend(world, 'repeatedCreations', 'the publisher calls publish again', (next) => publish(config, next)),
    );
  if (config.switches.has('epoch-cached-by-process') && world.named !== serverIdentity(config, world))
    steps.push(step(world, 'the process learns the epoch', (next) => (next.named = serverIdentity(config, next))));
  return steps;
}

/** An administrator's redrive or discard of a dead letter: first the order is read, then each effect is a step of its own. */
export function adminSteps(config: Configuration, world: World): WorldStep[] {
  return world.admins.flatMap((admin, index) => {
    const act = (label: string, change: (next: World, self: Admin) => void, fault = false) =>
      step(
        world,
        `admin ${index}: ${label}`,
        (next) => {
          const self = { ...admin };
          next.admins = next.admins.with(index, self);
          change(next, self);
        },
        fault,
      );
    const letters = [...new Set(ordersOf(world.redis.dead))];
    const begin = (stage: 'REDRIVE' | 'DISCARD', redrives: number) =>
      letters.map((order) =>
        act(`${stage === 'REDRIVE' ? 'redrives' : 'discards'} order ${order}`, (next, self) => {
          next.left = { ...next.left, redrives: next.left.redrives - redrives };
          Object.assign(self, { stage, order });
        }),
      );
    if (admin.stage === 'IDLE')
      return [...(world.left.redrives > 0 ? begin('REDRIVE', 1) : []), ...begin('DISCARD', 0)];
    const dies = world.left.crashes === 0 ? [] : [act('dies', (next, self) => adminDies(next, self), true)];
    return [
      act(`${admin.stage.toLowerCase()} (order ${admin.order})`, (next, self) => adminAct(config, next, self)),
      ...dies,
    ];
  });
}

function adminDies(next: World, self: Admin): void {
  next.left = { ...next.left, crashes: next.left.crashes - 1 };
  finish(self);
}

const finish = (self: Admin): void => {
  Object.assign(self, { stage: 'IDLE', order: NONE });
};

function adminAct(config: Configuration, next: World, self: Admin): void {
  const outcome = next.database.outcomes[self.order];
  switch (self.stage) {
    case 'IDLE':
      return;
    case 'REDRIVE':
      self.stage = outcome === 'ACTIVE' ? 'REMOVE' : outcome === 'REJECTED' ? 'RELEASE' : 'APPEND';
      return;
    case 'APPEND':
      redrive(config, next, self.order);
      return finish(self);
    case 'DISCARD':
      if (outcome === 'ACTIVE') self.stage = 'REMOVE';
      else self.stage = config.switches.has('discard-without-record') ? 'RELEASE' : 'RECORD';
      return;
    case 'RECORD':
      next.excused = having(next.excused, self.order);
      self.stage = rejectOrder(config, next, self.order) ? 'RELEASE' : 'REMOVE';
      return;
    case 'RELEASE':
      release(config, next, self.order);
      self.stage = 'REMOVE';
      return;
    case 'REMOVE':
      removeLetter(next, self.order);
      return finish(self);
  }
}

/** The operator's hand on the database, and entries of finished orders that come again (a group set back, a copy by hand). */
export function operatorSteps(_config: Configuration, world: World): WorldStep[] {
  const { database } = world;
  const steps: WorldStep[] = [];
  if (database.stock > 0)
    steps.push(
      ...spend(world, 'stockZeroings', 'the operator sets the stock to 0', (next) => (next.database.stock = 0)),
    );
  if (database.voucherKnown)
    steps.push(
      ...spend(world, 'voucherRemovals', 'the voucher row disappears', (next) => (next.database.voucherKnown = false)),
    );
  else steps.push(step(world, 'the voucher row is put back', (next) => (next.database.voucherKnown = true)));
  database.outcomes.forEach((outcome, order) => {
    if (outcome === 'NONE') return;
    steps.push(
      ...spend(world, 'replays', `the entry of finished order ${order} comes again`, (next) => append(next, order)),
    );
  });
  return steps;
}

/** What Redis loses: all, the latest, its identity; or single keys while it stays open. */
export function lossSteps(config: Configuration, world: World): WorldStep[] {
  const steps: WorldStep[] = [];
  if (world.snapshot === undefined)
    steps.push(...spend(world, 'snapshots', 'a copy of Redis is kept', (next) => (next.snapshot = world.redis)));
  for (const kind of config.losses) {
    const older = kind === 'older' || kind === 'failover';
    if (older && world.snapshot === undefined) continue;
    if (kind === 'failback' && world.run === world.home) continue;
    steps.push(...spend(world, 'losses', `loss: ${kind}`, (next) => lose(config, next, kind)));
  }
  // Keys that vanish while they are being rebuilt leave no trace at all: the look at the rules after the opening finds them.
  const rebuilding = world.reconcilers.some(({ stage }) => stage !== 'IDLE');
  for (const kind of config.keyLosses)
    if (world.redis.onSale && !rebuilding)
      steps.push(...spend(world, 'keyLosses', `key lost: ${kind}`, (next) => loseKey(config, next, kind)));
  return steps;
}

function lose(config: Configuration, next: World, kind: Configuration['losses'][number]): void {
  if (kind === 'flush') next.redis = emptyRedis(config);
  if (kind === 'older' || kind === 'failover') {
    next.redis = { ...(next.snapshot as Redis) };
    next.snapshot = undefined;
  }
  if (kind !== 'flush') next.replid = next.clock += 1;
  if (kind === 'restart' || kind === 'older') next.run = next.home = next.clock += 1;
  if (kind === 'failover') next.run = next.clock += 1;
  if (kind === 'failback') next.run = next.home;
  noteErased(config, next);
}

const emptyRedis = (config: Configuration): Redis => ({
  epoch: { kind: 'MISSING', server: NONE, token: NONE },
  onSale: false,
  stock: NO_STOCK,
  marks: Array.from({ length: config.buyers }, () => NONE),
  stream: [],
  dead: [],
  version: NONE,
});

function loseKey(config: Configuration, next: World, kind: Configuration['keyLosses'][number]): void {
  const { redis } = next;
  if (kind === 'stream') redis.stream = [];
  if (kind === 'mark') redis.marks = redis.marks.map(() => NONE);
  if (kind === 'drift') redis.stock -= 1;
  if (kind === 'voucher')
    Object.assign(redis, { onSale: false, stock: NO_STOCK, version: NONE, marks: redis.marks.map(() => NONE) });
  noteErased(config, next);
}

/** An accepted order of which neither Redis nor the database holds a trace any more is beyond what was promised. */
function noteErased(config: Configuration, next: World): void {
  const { marks, stream, dead } = next.redis;
  next.database.outcomes.forEach((outcome, order) => {
    const inRedis = marks[buyerOf(config, order)] === order || dead.some((letter) => letter.order === order);
    const inStream = stream.some((entry) => entry.order === order && entry.state !== 'GONE');
    if (outcome !== 'NONE' || inRedis || inStream || !has(next.answered, order)) return;
    next.erased = having(next.erased, order);
    next.excused = having(next.excused, order);
  });
}
