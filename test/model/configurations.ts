import type { Property } from './properties.js';
import type { Sizes } from './protocol.js';
import type { Switch } from './world.js';

/** The protocol as designed, in sizes that together hold every kind of trouble. Each must pass, all interleavings of it. */
export const designs: Readonly<Record<string, Sizes>> = {
  'drain: two consumers, two deaths, a slow one, stock set to 0': {
    purchasesPerBuyer: 2,
    consumers: 2,
    budgets: { crashes: 2, stockZeroings: 1, steals: 1 },
  },
  'drain: two units, entries of finished orders come again': {
    units: 2,
    consumers: 2,
    budgets: { crashes: 2, stockZeroings: 1, steals: 1, replays: 1 },
  },
  'drain: a purchase is executed twice': {
    purchasesPerBuyer: 2,
    budgets: { crashes: 1, stockZeroings: 1, resends: 1, replays: 1 },
  },
  'dead letters: a zombie, redrive and discard': {
    consumers: 2,
    admins: 1,
    budgets: { crashes: 1, steals: 1, voucherRemovals: 1, redrives: 1 },
  },
  'dead letters: two administrators at once': {
    buyers: 1,
    purchasesPerBuyer: 2,
    admins: 2,
    budgets: { crashes: 1, voucherRemovals: 1, redrives: 2 },
  },
  'dead letters: finished entries come again': {
    admins: 1,
    budgets: { crashes: 1, voucherRemovals: 1, replays: 1, redrives: 1 },
  },
  'loss: one of any kind, two consumers, a death': {
    purchasesPerBuyer: 2,
    consumers: 2,
    reconcilers: 1,
    losses: ['flush', 'restart', 'older'],
    budgets: { losses: 1, snapshots: 1, crashes: 1 },
  },
  'loss: two, and two reconcilers': {
    reconcilers: 2,
    losses: ['flush', 'restart'],
    budgets: { losses: 2 },
  },
  'loss: two of any kind, a death': {
    reconcilers: 1,
    losses: ['flush', 'restart', 'older'],
    budgets: { losses: 2, snapshots: 1, crashes: 1 },
  },
  'loss: two, with the same batch in two hands, one given up': {
    consumers: 2,
    reconcilers: 1,
    losses: ['flush', 'restart'],
    budgets: { losses: 2, steals: 1, givingUps: 1 },
  },
  'loss: two units, stock set to 0': {
    units: 2,
    reconcilers: 1,
    losses: ['flush', 'restart', 'older'],
    budgets: { losses: 1, snapshots: 1, stockZeroings: 1 },
  },
  'loss: rejections, deaths and an older state': {
    reconcilers: 1,
    losses: ['restart', 'older'],
    budgets: { losses: 1, snapshots: 1, stockZeroings: 1, crashes: 1 },
  },
  'loss: failover to a lagging replica and back': {
    reconcilers: 1,
    losses: ['failover', 'failback'],
    budgets: { losses: 2, snapshots: 1, crashes: 1 },
  },
  'loss: with dead letters': {
    buyers: 1,
    reconcilers: 1,
    admins: 1,
    losses: ['flush', 'restart', 'older'],
    budgets: { losses: 1, snapshots: 1, voucherRemovals: 1, redrives: 1 },
  },
  'rebuild on request during traffic, and a loss': {
    consumers: 2,
    reconcilers: 2,
    losses: ['flush'],
    budgets: { losses: 1, forcedRebuilds: 1 },
  },
  'publication: a publisher comes late, over a loss': {
    published: false,
    reconcilers: 2,
    losses: ['flush', 'older'],
    budgets: { losses: 1, snapshots: 1 },
  },
  'pass: two keys vanish one by one': {
    passes: 1,
    reconcilers: 1,
    keyLosses: ['stream', 'mark', 'drift'],
    budgets: { keyLosses: 2 },
  },
  'pass: two at once over a drift': {
    passes: 2,
    reconcilers: 1,
    keyLosses: ['drift'],
    budgets: { keyLosses: 1 },
  },
  'pass: over a loss': {
    passes: 1,
    reconcilers: 1,
    losses: ['flush', 'older'],
    budgets: { losses: 1, snapshots: 1 },
  },
  'pass: beside dead letters': {
    passes: 1,
    admins: 1,
    budgets: { voucherRemovals: 1, redrives: 1 },
  },
  'all keys of the voucher vanish': {
    passes: 1,
    reconcilers: 1,
    keyLosses: ['voucher'],
    budgets: { keyLosses: 1, crashes: 1, repeatedCreations: 1 },
  },
};

/** A size that makes the model go red when the safeguard is taken out, and the property that breaks first. Without the switch it passes. */
export interface Mutation {
  readonly breaks: Property;
  readonly sizes: Sizes;
}

export const mutations: Readonly<Record<Switch, Mutation>> = {
  'done-without-release': { breaks: 'P3 ENDS', sizes: { budgets: { stockZeroings: 1, crashes: 1 } } },
  'conflict-target': { breaks: 'P3 ENDS', sizes: { budgets: { stockZeroings: 1, crashes: 1 } } },
  'epoch-cached-by-process': {
    breaks: 'MARKED',
    sizes: { reconcilers: 1, losses: ['older'], budgets: { losses: 1, snapshots: 1 } },
  },
  'epoch-by-run-id': {
    breaks: 'MARKED',
    sizes: { reconcilers: 1, losses: ['failover', 'failback'], budgets: { losses: 2, snapshots: 1 } },
  },
  'open-without-compare-and-set': {
    breaks: 'MARKED',
    sizes: { reconcilers: 1, losses: ['restart', 'older'], budgets: { losses: 2, snapshots: 1 } },
  },
  'no-fence': { breaks: 'MARKED', sizes: { reconcilers: 1, losses: ['flush'], budgets: { losses: 1 } } },
  'fence-before-begin': {
    breaks: 'MARKED',
    sizes: { reconcilers: 1, losses: ['restart', 'flush'], budgets: { losses: 2 } },
  },
  'number-read-after-entries': {
    breaks: 'MARKED',
    sizes: { reconcilers: 1, losses: ['flush'], budgets: { losses: 1 } },
  },
  'discard-without-record': { breaks: 'MARKED', sizes: { admins: 1, budgets: { voucherRemovals: 1 } } },
  'dead-letter-without-ack': {
    breaks: 'LETTERS',
    sizes: { consumers: 2, admins: 1, budgets: { voucherRemovals: 1, steals: 1 } },
  },
  'trim-in-two-calls': { breaks: 'P3 ENDS', sizes: { units: 2, consumers: 2, budgets: { crashes: 1 } } },
  'stock-from-a-reading': {
    breaks: 'SUM',
    sizes: { reconcilers: 1, losses: ['restart'], budgets: { losses: 1, stockZeroings: 1 } },
  },
  'release-without-mark': { breaks: 'SUM', sizes: { budgets: { stockZeroings: 1, crashes: 1 } } },
  'release-before-record': { breaks: 'MARKED', sizes: { budgets: { stockZeroings: 1 } } },
  'ack-before-commit': { breaks: 'P3 ENDS', sizes: { budgets: { crashes: 1 } } },
  'marks-not-looked-at-again': {
    breaks: 'P3 ENDS',
    sizes: { reconcilers: 1, losses: ['older'], budgets: { losses: 1, snapshots: 1, stockZeroings: 1 } },
  },
  'raise-at-first-finding': {
    breaks: 'P1 RIGHTS',
    sizes: { passes: 1, reconcilers: 1, keyLosses: ['mark'], budgets: { keyLosses: 1 } },
  },
  'raise-without-fence': {
    breaks: 'P1 RIGHTS',
    sizes: { passes: 1, reconcilers: 1, keyLosses: ['mark', 'stream'], budgets: { keyLosses: 2 } },
  },
  'mark-of-any-version': {
    breaks: 'P1 RIGHTS',
    sizes: { passes: 1, reconcilers: 1, losses: ['flush'], budgets: { losses: 1 } },
  },
  'publish-on-repeat': {
    breaks: 'P1 RIGHTS',
    sizes: { reconcilers: 1, keyLosses: ['voucher'], budgets: { keyLosses: 1, repeatedCreations: 1 } },
  },
};
