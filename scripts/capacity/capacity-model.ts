import type { MeasuredCosts } from './measured-costs.js';

/** A sale as its owner sees it. */
export interface Demand {
  /** Purchases that arrive per second, at the peak. */
  readonly rate: number;
  /** Buyers in all, each of whom wants one unit. */
  readonly buyers: number;
  /** Units in all. */
  readonly stock: number;
  /** Within how many seconds the accepted orders are to stand in the database. */
  readonly storedWithinSeconds: number;
  /** Vouchers over which the demand is spread evenly. */
  readonly vouchers: number;
}

/** What the sale needs, and where one thing alone is too slow. */
export interface Capacity {
  readonly acceptedPerSecond: number;
  readonly refusedPerSecond: number;
  readonly sellsForSeconds: number;
  readonly apiProcesses: number;
  readonly redisPrimaries: number;
  /** The share of one Redis core that the hottest voucher takes. */
  readonly hottestVoucherShare: number;
  readonly workers: number;
  readonly databaseWritesPerSecond: number;
  readonly redisMarkBytes: number;
}

/** How full a core may be: above it queues grow, and with them every answer's time. */
export const FULLEST_CORE = 0.6;
/** A mark in a large hash: user id, order id, and the table around them. */
export const MARK_BYTES = 100;
const CORE_US = 1_000_000;

/**
 * What the demand needs at the measured costs. While units are left every purchase passes through Redis and is accepted; from the last unit on refusals
 * are answered by the API processes from memory. The peak of either kind counts, for a rush is both within seconds.
 */
export function capacityOf(demand: Demand, costs: MeasuredCosts): Capacity {
  const { rate, buyers, stock, vouchers, storedWithinSeconds } = demand;
  const orders = Math.min(stock, buyers);
  const sellsForSeconds = orders / rate;
  const acceptedPerSecond = Math.min(rate, orders);
  const refusedPerSecond = buyers > stock ? rate : 0;
  const apiUs = Math.max(acceptedPerSecond * costs.acceptedApiUs, refusedPerSecond * costs.refusedApiUs);
  const redisUs = acceptedPerSecond * costs.acceptedRedisUs;
  const databaseWritesPerSecond = Math.ceil(orders / Math.max(storedWithinSeconds, sellsForSeconds));
  return {
    acceptedPerSecond,
    refusedPerSecond,
    sellsForSeconds,
    apiProcesses: atLeastOne(apiUs / (CORE_US * FULLEST_CORE)),
    redisPrimaries: atLeastOne(redisUs / (CORE_US * FULLEST_CORE)),
    hottestVoucherShare: redisUs / vouchers / CORE_US,
    workers: atLeastOne(databaseWritesPerSecond / (costs.storedPerSecond * FULLEST_CORE)),
    databaseWritesPerSecond,
    redisMarkBytes: orders * MARK_BYTES,
  };
}

function atLeastOne(exact: number): number {
  return Math.max(1, Math.ceil(exact));
}
