import type { Step } from './explorer.js';
import { ordersOf, sees, streamOrders } from './rebuild.js';
import { buyerOf, correctStock, isOpen, mark, markCount, reappend, release, remark } from './register-scripts.js';
import {
  cloneWorld,
  has,
  idlePass,
  NONE,
  NO_STOCK,
  type Configuration,
  type Order,
  type Pass,
  type Repair,
  type World,
} from './world.js';

type Change = (next: World, self: Pass) => void;

/** The steps of the reconciliation pass (ReconciliationService): read everything in order, then repair by guarded scripts. */
export function passSteps(config: Configuration, world: World): Step<World>[] {
  return world.passes.flatMap((pass, index) => {
    const steps: Step<World>[] = [];
    const act = (label: string, change: Change, fault = false) => {
      const next = cloneWorld(world);
      const self = { ...pass };
      next.passes = next.passes.with(index, self);
      change(next, self);
      steps.push({ label: `pass ${index}: ${label}`, next, fault });
    };
    readOrRepair(config, world, pass, act);
    if (pass.stage !== 'IDLE' && world.left.crashes > 0)
      act(
        'dies',
        (next, self) => {
          next.left = { ...next.left, crashes: next.left.crashes - 1 };
          Object.assign(self, idlePass(config.buyers));
        },
        true,
      );
    return steps;
  });
}

type Act = (label: string, change: Change, fault?: boolean) => void;

function readOrRepair(config: Configuration, world: World, pass: Pass, act: Act): void {
  switch (pass.stage) {
    case 'IDLE':
      if (!isOpen(config, world) || world.redis.stock === NO_STOCK) return;
      return act('reads the version, then the marks', (next, self) => {
        self.version = next.redis.version;
        self.marks = next.redis.marks;
        self.stage = 'MARKS_READ';
      });
    case 'MARKS_READ':
      return act('reads the stock', (next, self) => {
        self.drift = next.redis.stock === NO_STOCK ? 0 : config.units - next.redis.stock - markCount(next);
        self.stage = 'STOCK_READ';
      });
    case 'STOCK_READ':
      return act('reads the stream', (_next, self) => sees(self, streamOrders(world), 'STREAM_READ'));
    case 'STREAM_READ':
      return act('reads the dead letters', (next, self) => sees(self, ordersOf(next.redis.dead), 'DEAD_READ'));
    case 'DEAD_READ':
      return act('reads the rest of the stream again', (_next, self) =>
        sees(self, streamOrders(world), 'STREAM_READ_AGAIN'),
      );
    case 'STREAM_READ_AGAIN':
      return act('reads the database', (next, self) => findRepairs(config, next, self));
    case 'REPAIRING':
      return act(describeRepair(pass.repairs[0] as Repair), (next, self) => repairFirst(config, next, self));
  }
}

const repair = (kind: Repair['kind'], order: Order, more: Partial<Repair> = {}): Repair => ({
  kind,
  order,
  instead: NONE,
  difference: 0,
  ...more,
});

const describeRepair = ({ kind, order }: Repair): string =>
  `${kind.toLowerCase().replaceAll('_', ' ')} (order ${order})`;

/** The table of design section 8: what was read suggests, the scripts decide. The stock comes last, and alone. */
function findRepairs(config: Configuration, next: World, self: Pass): void {
  const { outcomes } = next.database;
  self.repairs = self.marks.flatMap((markRead, buyer) => {
    const own = outcomes.map((_, order) => order).filter((order) => buyerOf(config, order) === buyer);
    const onItsWay = (order: Order) => has(self.onTheWay, order) && outcomes[order] === 'NONE';
    const active = own.find((order) => outcomes[order] === 'ACTIVE');
    if (active !== undefined) {
      if (markRead === active || (markRead !== NONE && onItsWay(markRead))) return [];
      if (markRead === NONE) return [repair('MARK_ROW', active)];
      return [repair('REPLACE', active, { instead: markRead })];
    }
    if (markRead === NONE)
      return own
        .filter(onItsWay)
        .slice(0, 1)
        .map((order) => repair('MARK_ENTRY', order));
    if (outcomes[markRead] === 'REJECTED') return [repair('RELEASE', markRead)];
    return has(self.onTheWay, markRead) ? [] : [repair('APPEND', markRead)];
  });
  if (self.repairs.length > 0) self.driftFoundBefore = 0;
  else if (self.drift !== 0) decideOnStock(config, self);
  else self.driftFoundBefore = 0;
  const { repairs, driftFoundBefore, version } = self;
  Object.assign(self, idlePass(config.buyers), { repairs, driftFoundBefore });
  if (repairs.length > 0) Object.assign(self, { stage: 'REPAIRING', version });
}

/** A drift that would raise the stock is left to the rebuild of the voucher, which raises the fence first. */
function decideOnStock(config: Configuration, self: Pass): void {
  const { drift, driftFoundBefore } = self;
  const again = driftFoundBefore === drift && config.switches.has('raise-without-fence');
  self.driftFoundBefore = drift > 0 && !again ? drift : 0;
  if (drift < 0 || again || config.switches.has('raise-at-first-finding'))
    self.repairs = [repair('CORRECT_STOCK', NONE, { difference: drift })];
}

function repairFirst(config: Configuration, next: World, self: Pass): void {
  const [first, ...rest] = self.repairs as [Repair, ...Repair[]];
  self.repairs = [...doOne(config, next, first, self.version), ...rest];
  if (self.repairs.length === 0) Object.assign(self, { stage: 'IDLE', version: NONE });
}

/** Does one repair; answers what follows from it. */
function doOne(
  config: Configuration,
  next: World,
  { kind, order, instead, difference }: Repair,
  version: number,
): Repair[] {
  const lookAgain = config.switches.has('marks-not-looked-at-again') ? [] : [repair('LOOK_AGAIN', order)];
  switch (kind) {
    case 'APPEND':
      reappend(config, next, order);
      return [];
    case 'MARK_ROW':
      return mark(config, next, order) ? lookAgain : [];
    case 'MARK_ENTRY': {
      const anyVersion = config.switches.has('mark-of-any-version');
      return mark(config, next, order, anyVersion ? undefined : version) ? lookAgain : [];
    }
    case 'REPLACE':
      return remark(config, next, instead, order) ? lookAgain : [];
    case 'LOOK_AGAIN':
      return next.database.outcomes[order] === 'REJECTED' ? [repair('RELEASE', order)] : [];
    case 'RELEASE':
      release(config, next, order);
      return [];
    case 'CORRECT_STOCK':
      correctStock(config, next, difference);
      return [];
  }
}
