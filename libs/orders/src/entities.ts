import { OrderRejection } from './order-rejection.entity.js';
import { StockLedgerEntry } from './stock-ledger-entry.entity.js';
import { VoucherOrder } from './voucher-order.entity.js';

export { OrderRejection, StockLedgerEntry, VoucherOrder };

/** The entities of this room, for data sources that are made by hand. */
export const ORDER_ENTITIES = [VoucherOrder, OrderRejection, StockLedgerEntry];
