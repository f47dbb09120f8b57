/**
 * Which lib may import which, front to back. One table for three readers: the linter (eslint.config.mjs), the tidy test (test/tidy.spec.ts)
 * and people (ARCHITECTURE.md shows it). `apps` may import every lib; nobody imports apps.
 */
export const importTable = {
  config: [],
  'order-stream': [],
  http: ['config'],
  redis: ['config', 'http'],
  database: ['config', 'http'],
  auth: ['config', 'http'],
  'sale-register': ['redis', 'order-stream', 'config'],
  orders: ['database', 'redis', 'order-stream', 'config'],
  vouchers: ['sale-register', 'orders', 'database', 'redis', 'auth', 'http', 'config'],
  'voucher-order': ['sale-register', 'redis', 'auth', 'http', 'config', 'orders', 'vouchers'],
  'stream-consumer': ['sale-register', 'order-stream', 'orders', 'redis', 'config'],
  'dead-letters': ['sale-register', 'order-stream', 'orders', 'auth', 'http', 'config'],
  reconciliation: [
    'sale-register',
    'order-stream',
    'orders',
    'vouchers',
    'database',
    'redis',
    'auth',
    'http',
    'config',
  ],
  lifecycle: ['config', 'http'],
  'queue-lab': [],
  hmdp: ['vouchers', 'voucher-order', 'database', 'redis', 'auth', 'http', 'config'],
  health: [
    'sale-register',
    'stream-consumer',
    'reconciliation',
    'lifecycle',
    'database',
    'redis',
    'auth',
    'http',
    'config',
  ],
};

/** Drivers that only the named places may import. A place is a lib, or a file-name ending anywhere in libs. */
export const driverOwners = {
  ioredis: { libs: ['redis', 'queue-lab'], endings: [] },
  redlock: { libs: ['redis'], endings: [] },
  pg: { libs: ['database'], endings: [] },
  typeorm: { libs: ['database'], endings: ['.entity.ts', '.repository.ts', '.reader.ts'] },
};
