/** The state of the whole system in the model: one partition, one voucher, everything that outlives a step. docs/protocol.md explains it. */

/** An order id: buyer * purchasesPerBuyer + how many orders the buyer had before. */
export type Order = number;
/** A set of orders, one bit each. */
export type Orders = number;
export const NONE = -1;
/** The value of a stock key that does not exist (a stock may be negative). */
export const NO_STOCK = -100;

/** A safeguard taken out, or done in the wrong way. Each must make the exploration find a violation. */
export type Switch =
  | 'done-without-release'
  | 'conflict-target'
  | 'epoch-cached-by-process'
  | 'epoch-by-run-id'
  | 'open-without-compare-and-set'
  | 'no-fence'
  | 'fence-before-begin'
  | 'number-read-after-entries'
  | 'discard-without-record'
  | 'dead-letter-without-ack'
  | 'trim-in-two-calls'
  | 'stock-from-a-reading'
  | 'release-without-mark'
  | 'release-before-record'
  | 'ack-before-commit'
  | 'marks-not-looked-at-again'
  | 'raise-at-first-finding'
  | 'raise-without-fence'
  | 'mark-of-any-version'
  | 'publish-on-repeat';

export type LossKind = 'flush' | 'restart' | 'older' | 'failover' | 'failback';
export type KeyLossKind = 'stream' | 'mark' | 'voucher' | 'drift';

/** How often the outside may act. */
export interface Budgets {
  crashes: number;
  /** Claims of an entry that a living, slow consumer has in hand. */
  steals: number;
  losses: number;
  /** Copies of Redis as it stands: what a lagging replica or an old file holds. */
  snapshots: number;
  resends: number;
  replays: number;
  redrives: number;
  /** The operator sets the database stock to 0. */
  stockZeroings: number;
  /** The voucher's row disappears (and may be put back). */
  voucherRemovals: number;
  forcedRebuilds: number;
  keyLosses: number;
  /** The call that made the voucher comes again (an idempotency key). */
  repeatedCreations: number;
  /** A consumer ends while the register is closed to an order that it has in hand. */
  givingUps: number;
}

/** The size of one exploration. */
export interface Configuration {
  readonly buyers: number;
  readonly purchasesPerBuyer: number;
  readonly units: number;
  readonly consumers: number;
  /** Processes that rebuild and open a closed partition. */
  readonly reconcilers: number;
  /** Processes that run the reconciliation pass over an open partition. */
  readonly passes: number;
  readonly admins: number;
  readonly published: boolean;
  readonly budgets: Readonly<Budgets>;
  readonly losses: readonly LossKind[];
  readonly keyLosses: readonly KeyLossKind[];
  readonly switches: ReadonlySet<Switch>;
}

export type EntryState = 'NEW' | 'PENDING' | 'ACKED' | 'GONE';
/** GONE: trimmed from the stream while the group's pending list still names it. */
export interface Entry {
  readonly id: number;
  readonly order: Order;
  readonly state: EntryState;
}

/** A dead letter, and the entry for which it was written. */
export interface Letter {
  readonly entry: number;
  readonly order: Order;
}

/** The value of `seckill:epoch:{p}`. `server` is the identity of the data history (master_replid) that it names. */
export interface Epoch {
  kind: 'MISSING' | 'OPEN' | 'RECONCILING';
  server: number;
  token: number;
}

export interface Redis {
  epoch: Readonly<Epoch>;
  onSale: boolean;
  /** NO_STOCK: no such key. */
  stock: number;
  /** By buyer: the order that the mark names. */
  marks: readonly Order[];
  /** In the order of their ids. */
  stream: readonly Entry[];
  dead: readonly Letter[];
  /** The sale's version: another one after each change that frees or adds units or sets marks (not after a purchase). */
  version: number;
}

export type Outcome = 'NONE' | 'ACTIVE' | 'REJECTED';
export interface Database {
  outcomes: readonly Outcome[];
  stock: number;
  voucherKnown: boolean;
}

/** What a consumer has still to do with an entry in hand. */
export type Todo = 'STORE' | 'REJECT' | 'RELEASE' | 'RELEASE_FIRST' | 'DEAD_LETTER' | 'FIND' | 'READMIT' | 'ACK';
export interface Item {
  readonly id: number;
  readonly order: Order;
  readonly todo: Todo;
}
export interface Consumer {
  /** Whether the epoch number that it knows is the current one. */
  fresh: boolean;
  items: readonly Item[];
  /** Only with `trim-in-two-calls`: the oldest pending id as read (NONE where nothing was pending); undefined: not trimming. */
  oldestPending: number | undefined;
}

export type ReconcilerStage =
  | 'IDLE'
  | 'FENCED_ONLY'
  | 'BEGUN'
  | 'FENCED'
  | 'MARKS_READ'
  | 'STREAM_READ'
  | 'DEAD_READ'
  | 'STREAM_READ_AGAIN'
  | 'DATABASE_READ'
  | 'MARKS_WRITTEN'
  | 'LOOKED_AGAIN'
  | 'STOCK_SET';
export interface Reconciler {
  stage: ReconcilerStage;
  token: number;
  /** What it read: the marks, and (by order) what it saw on the way. */
  marks: readonly Order[];
  onTheWay: Orders;
  /** By buyer: the mark to write; after the second look: the order to release. */
  plan: readonly Order[];
  /** Only with `stock-from-a-reading`. */
  countRead: number;
}

export type PassStage =
  'IDLE' | 'MARKS_READ' | 'STOCK_READ' | 'STREAM_READ' | 'DEAD_READ' | 'STREAM_READ_AGAIN' | 'REPAIRING';
export interface Pass {
  stage: PassStage;
  marks: readonly Order[];
  onTheWay: Orders;
  /** The repairs still to do, in the order of the table. */
  repairs: readonly Repair[];
  /** The sale's version as read with the marks. */
  version: number;
  /** units - (stock + marks), as read. */
  drift: number;
  /** The difference that the full pass before found, and nothing else; 0: none. */
  driftFoundBefore: number;
}
/** `instead`: the order whose mark a REPLACE takes the place of; `difference`: what a CORRECT_STOCK expects to find. */
export interface Repair {
  readonly kind: 'APPEND' | 'MARK_ROW' | 'MARK_ENTRY' | 'REPLACE' | 'LOOK_AGAIN' | 'RELEASE' | 'CORRECT_STOCK';
  readonly order: Order;
  readonly instead: Order;
  readonly difference: number;
}

export type AdminStage = 'IDLE' | 'REDRIVE' | 'DISCARD' | 'RECORD' | 'RELEASE' | 'APPEND' | 'REMOVE';
export interface Admin {
  stage: AdminStage;
  order: Order;
}

export interface World {
  redis: Redis;
  /** The server's own master_replid and run_id; `home` is the run_id to which a failback returns. */
  replid: number;
  run: number;
  home: number;
  /** Only with `epoch-cached-by-process`: the epoch that the process names. */
  named: number;
  snapshot: Readonly<Redis> | undefined;
  database: Database;
  consumers: readonly Consumer[];
  reconcilers: readonly Reconciler[];
  passes: readonly Pass[];
  admins: readonly Admin[];
  /** A publisher that has stored the voucher and not yet called the publish script. */
  publishing: boolean;
  left: Readonly<Budgets>;
  /**
   * Ghosts, seen by the properties only. `answered`: told 202. `erased`: undecided, and without a trace since a loss of Redis data.
   * `excused`: may be rejected without anybody's fault (erased once, discarded by an administrator, or given up at the end of a process).
   */
  answered: Orders;
  erased: Orders;
  excused: Orders;
  /** An order that was rejected without a cause, or NONE. */
  causeless: Order;
  /** Makes fresh ids, tokens and identities; not part of the state's identity. */
  clock: number;
}

export const noBudgets: Budgets = {
  crashes: 0,
  steals: 0,
  losses: 0,
  snapshots: 0,
  resends: 0,
  replays: 0,
  redrives: 0,
  stockZeroings: 0,
  voucherRemovals: 0,
  forcedRebuilds: 0,
  keyLosses: 0,
  repeatedCreations: 0,
  givingUps: 0,
};

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

export const idlePass = (buyers: number): Pass => ({
  stage: 'IDLE',
  marks: times(buyers, () => NONE),
  onTheWay: 0,
  repairs: [],
  version: NONE,
  drift: 0,
  driftFoundBefore: 0,
});

export const idleReconciler = (buyers: number): Reconciler => ({
  stage: 'IDLE',
  token: NONE,
  marks: times(buyers, () => NONE),
  onTheWay: 0,
  plan: times(buyers, () => NONE),
  countRead: NONE,
});

/** The voucher stored and (where `published`) on sale; Redis open on its first data history; nobody has bought. */
export function initialWorld(config: Configuration): World {
  const orders = config.buyers * config.purchasesPerBuyer;
  return {
    redis: {
      epoch: { kind: 'OPEN', server: config.switches.has('epoch-by-run-id') ? 2 : 1, token: NONE },
      onSale: config.published,
      stock: config.published ? config.units : NO_STOCK,
      marks: times(config.buyers, () => NONE),
      stream: [],
      dead: [],
      version: 3,
    },
    replid: 1,
    run: 2,
    home: 2,
    named: 1,
    snapshot: undefined,
    database: { outcomes: times(orders, () => 'NONE' as const), stock: config.units, voucherKnown: true },
    consumers: times(config.consumers, () => ({ fresh: true, items: [], oldestPending: undefined })),
    reconcilers: times(config.reconcilers, () => idleReconciler(config.buyers)),
    passes: times(config.passes, () => idlePass(config.buyers)),
    admins: times(config.admins, () => ({ stage: 'IDLE' as const, order: NONE })),
    publishing: !config.published,
    left: { ...config.budgets },
    answered: 0,
    erased: 0,
    excused: 0,
    causeless: NONE,
    clock: 10,
  };
}

export const has = (orders: Orders, order: Order): boolean => (orders & (1 << order)) !== 0;
export const having = (orders: Orders, order: Order): Orders => orders | (1 << order);

/**
 * A world that a step may change: the world itself, `redis` and `database` are copies. What is below them (lists, entries, processes,
 * budgets) is shared with the state before and is replaced, never changed.
 */
export const cloneWorld = (world: World): World => ({
  redis: { ...world.redis },
  replid: world.replid,
  run: world.run,
  home: world.home,
  named: world.named,
  snapshot: world.snapshot,
  database: { ...world.database },
  consumers: world.consumers,
  reconcilers: world.reconcilers,
  passes: world.passes,
  admins: world.admins,
  publishing: world.publishing,
  left: world.left,
  answered: world.answered,
  erased: world.erased,
  excused: world.excused,
  causeless: world.causeless,
  clock: world.clock,
});
