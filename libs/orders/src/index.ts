export * from './order.types.js';
export { ORDER_ENTITIES, OrderRejection, StockLedgerEntry, VoucherOrder } from './entities.js';
export { OrderRepository } from './order.repository.js';
export { OrderReader, type OrderKey, type OrderPage } from './order.reader.js';
export { OrdersModule } from './orders.module.js';
export { StockLedger, type LedgerEntry, type LedgerKind, type NewLedgerEntry } from './stock-ledger.js';
