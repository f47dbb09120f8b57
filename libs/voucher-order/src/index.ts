export { AdmissionBatcher, type AdmissionRegister } from './admission/admission-batcher.js';
export { unixSecondOfOrderId } from './admission/order-id.js';
export { RedisIdWorker, type LeaseSequences } from './admission/redis-id-worker.js';
