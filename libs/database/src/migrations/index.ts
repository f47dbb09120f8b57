import { CreateVouchers1764500000001 } from './0001-create-vouchers.js';
import { CreateOrders1764500000002 } from './0002-create-orders.js';
import { CreateLedgerAndKeys1764500000003 } from './0003-create-ledger-and-keys.js';
import { CreateUsers1764500000004 } from './0004-create-users.js';
import { KeepPartitionHistory1764500000005 } from './0005-keep-partition-history.js';

/** All migrations, oldest first. One that was released is never changed: a new one follows it. */
export const MIGRATIONS = [
  CreateVouchers1764500000001,
  CreateOrders1764500000002,
  CreateLedgerAndKeys1764500000003,
  CreateUsers1764500000004,
  KeepPartitionHistory1764500000005,
];
