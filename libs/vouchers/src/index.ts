export * from './voucher.types.js';
export { Voucher } from './voucher.entity.js';
export { SeckillVoucher } from './seckill-voucher.entity.js';
