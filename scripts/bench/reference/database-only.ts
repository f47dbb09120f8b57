import { openPool, storeOrder } from './peer-orders.js';
import { servePurchases } from './purchase-route.js';

/** Peer (a): no Redis; each purchase is one transaction. */
const pool = openPool();
let last = BigInt(Date.now()) << 20n;

await servePurchases(async (voucherId, userId) => {
  const orderId = String((last += 1n));
  const outcome = await storeOrder(pool, { orderId, userId, voucherId });
  return outcome === 'STORED' ? { kind: 'ACCEPTED', orderId } : { kind: outcome };
}, 'UNPAID');
