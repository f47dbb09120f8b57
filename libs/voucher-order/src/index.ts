export { AdmissionBatcher, type AdmissionRegister } from './admission/admission-batcher.js';
export { AdmissionService, type PurchaseOutcome } from './admission/admission.service.js';
export { unixSecondOfOrderId } from './admission/order-id.js';
export { type LeaseSequences, RedisIdWorker } from './admission/redis-id-worker.js';
export { type OrderAnswer, OrderStatusService, type OwnOrdersAnswer } from './order-status.service.js';
export { VoucherOrderModule } from './voucher-order.module.js';
