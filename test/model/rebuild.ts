import { raiseEpochNumber } from './database-transactions.js';
import type { Step } from './explorer.js';
import { buyerOf, holdsToken, isOpen, markCount, raiseVersion, release, serverIdentity } from './register-scripts.js';
import {
  cloneWorld,
  has,
  having,
  idleReconciler,
  NONE,
  NO_STOCK,
  type Configuration,
  type Order,
  type Orders,
  type Reconciler,
  type World,
} from './world.js';

type Change = (next: World, self: Reconciler) => void;

/** The steps of every reconciler that rebuilds a closed partition and opens it (RebuildService, EpochWatch). */
export function rebuildSteps(config: Configuration, world: World): Step<World>[] {
  return world.reconcilers.flatMap((reconciler, index) => {
    const steps: Step<World>[] = [];
    const act = (label: string, change: Change, fault = false) => {
      const next = cloneWorld(world);
      const self = { ...reconciler };
      next.reconcilers = next.reconcilers.with(index, self);
      change(next, self);
      steps.push({ label: `reconciler ${index}: ${label}`, next, fault });
    };
    if (reconciler.stage === 'IDLE') beginSteps(config, world, act);
    else workingStep(config, reconciler, act);
    if (reconciler.stage !== 'IDLE' && world.left.crashes > 0)
      act(
        'dies',
        (next, self) => {
          next.left = { ...next.left, crashes: next.left.crashes - 1 };
          startOver(config, self);
        },
        true,
      );
    return steps;
  });
}

type Act = (label: string, change: Change, fault?: boolean) => void;

function startOver(config: Configuration, self: Reconciler): void {
  Object.assign(self, idleReconciler(config.buyers));
}

function beginSteps(config: Configuration, world: World, act: Act): void {
  const { epoch, onSale, stock } = world.redis;
  const complete = onSale && stock !== NO_STOCK && stock + markCount(world) === config.units;
  const nobodyMissed = epoch.kind === 'OPEN' && isOpen(config, world) && (complete || world.publishing);
  const begin = (next: World, self: Reconciler) => {
    self.token = next.clock += 1;
    next.redis.epoch = { kind: 'RECONCILING', server: serverIdentity(config, next), token: self.token };
    self.stage = self.stage === 'FENCED_ONLY' ? 'FENCED' : 'BEGUN';
  };
  const fenceFirst = config.switches.has('fence-before-begin');
  const fence: Change = (next, self) => {
    raiseEpochNumber(next);
    self.stage = 'FENCED_ONLY';
  };
  if (!nobodyMissed) return fenceFirst ? act('raises the epoch number', fence) : act('begins', begin);
  if (world.left.forcedRebuilds === 0) return;
  act(
    'begins, asked by an administrator',
    (next, self) => {
      next.left = { ...next.left, forcedRebuilds: next.left.forcedRebuilds - 1 };
      begin(next, self);
    },
    true,
  );
}

/** One read, one script or one transaction. Scripts of the rebuild refuse without the token: the work starts over. */
function workingStep(config: Configuration, reconciler: Reconciler, act: Act): void {
  const guarded = (label: string, change: Change) =>
    act(label, (next, self) => (holdsToken(config, next, self.token) ? change(next, self) : startOver(config, self)));
  switch (reconciler.stage) {
    case 'IDLE':
      return;
    case 'FENCED_ONLY':
      return act('begins, after the fence', (next, self) => {
        self.token = next.clock += 1;
        next.redis.epoch = { kind: 'RECONCILING', server: serverIdentity(config, next), token: self.token };
        self.stage = 'FENCED';
      });
    case 'BEGUN':
      return act('raises the epoch number', (next, self) => {
        raiseEpochNumber(next);
        self.stage = 'FENCED';
      });
    case 'FENCED':
      return act('reads the marks', (next, self) => {
        self.marks = next.redis.marks;
        self.stage = 'MARKS_READ';
      });
    case 'MARKS_READ':
      return act('reads the stream', (next, self) => sees(self, streamOrders(next), 'STREAM_READ'));
    case 'STREAM_READ':
      return act('reads the dead letters', (next, self) => sees(self, ordersOf(next.redis.dead), 'DEAD_READ'));
    case 'DEAD_READ':
      return act('reads the rest of the stream again', (next, self) =>
        sees(self, streamOrders(next), 'STREAM_READ_AGAIN'),
      );
    case 'STREAM_READ_AGAIN':
      return act('reads the database', (next, self) => planMarks(config, next, self));
    case 'DATABASE_READ':
      return guarded('writes the marks', writeMarks);
    case 'MARKS_WRITTEN':
      return act('looks at the rows of its marks again', (next, self) => lookAgain(config, next, self));
    case 'LOOKED_AGAIN':
      return finishStep(config, reconciler, act, guarded);
    case 'STOCK_SET':
      return openStep(config, act);
  }
}

export const ordersOf = (holders: readonly { order: Order }[]): Order[] => holders.map(({ order }) => order);

export const streamOrders = (world: World): Order[] =>
  ordersOf(world.redis.stream.filter((entry) => entry.state !== 'GONE'));

export function sees<Stage>(self: { onTheWay: Orders; stage: Stage }, orders: readonly Order[], stage: Stage): void {
  self.onTheWay = orders.reduce(having, self.onTheWay);
  self.stage = stage;
}

/** For each buyer the mark that must stand: the active row; else the mark as read or an order on its way, if undecided. */
function planMarks(config: Configuration, next: World, self: Reconciler): void {
  const { outcomes } = next.database;
  self.plan = self.marks.map((markRead, buyer) => {
    const own = outcomes.map((_, order) => order).filter((order) => buyerOf(config, order) === buyer);
    const active = own.find((order) => outcomes[order] === 'ACTIVE');
    if (active !== undefined) return active;
    if (markRead !== NONE && outcomes[markRead] === 'NONE') return markRead;
    return own.find((order) => has(self.onTheWay, order) && outcomes[order] === 'NONE') ?? NONE;
  });
  self.onTheWay = 0;
  self.stage = 'DATABASE_READ';
}

function writeMarks(next: World, self: Reconciler): void {
  next.redis.marks = next.redis.marks.map((mark, buyer) => {
    const target = self.plan[buyer] as Order;
    const unchanged = mark === self.marks[buyer];
    return unchanged || (target !== NONE && mark === NONE) ? target : mark;
  });
  self.stage = 'MARKS_WRITTEN';
}

/** A mark that was written from a reading may name an order that was rejected meanwhile, and released before the mark came. */
function lookAgain(config: Configuration, next: World, self: Reconciler): void {
  const rejected = (order: Order) => order !== NONE && next.database.outcomes[order] === 'REJECTED';
  const skip = config.switches.has('marks-not-looked-at-again');
  self.plan = self.plan.map((order) => (rejected(order) && !skip ? order : NONE));
  self.marks = self.marks.map(() => NONE);
  self.stage = 'LOOKED_AGAIN';
}

function finishStep(
  config: Configuration,
  reconciler: Reconciler,
  act: Act,
  guarded: (label: string, change: Change) => void,
): void {
  const stale = reconciler.plan.find((order) => order !== NONE);
  if (stale !== undefined)
    return act(`releases order ${stale}`, (next, self) => {
      release(config, next, stale);
      self.plan = self.plan.map((order) => (order === stale ? NONE : order));
    });
  if (config.switches.has('stock-from-a-reading') && reconciler.countRead === NONE)
    return act('counts the marks', (next, self) => (self.countRead = markCount(next)));
  guarded('sets the stock and puts on sale', (next, self) => {
    const count = self.countRead === NONE ? markCount(next) : self.countRead;
    next.redis.stock = config.units - count;
    next.redis.onSale = true;
    raiseVersion(next);
    self.countRead = NONE;
    self.stage = 'STOCK_SET';
  });
}

/** rebuild-open: compares token and server, asks for every key, and sets the epoch, all in one script. */
function openStep(config: Configuration, act: Act): void {
  act('opens', (next, self) => {
    const mayOpen = holdsToken(config, next, self.token) || config.switches.has('open-without-compare-and-set');
    if (mayOpen && next.redis.onSale && next.redis.stock !== NO_STOCK) {
      const server = serverIdentity(config, next);
      next.redis.epoch = { kind: 'OPEN', server, token: NONE };
      next.named = server;
    }
    startOver(config, self);
  });
}
