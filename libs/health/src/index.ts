export type { HealthPart, HealthReport, HealthStatus } from './health-report.js';
export { HealthModule } from './health.module.js';
export { OrdersHealth } from './orders-health.js';
export { PurchasesHealth } from './purchases-health.js';
export { type Reading, SharedProbe } from './shared-probe.js';
export { StreamSampler } from './stream-sampler.js';
