export { EpochWatch } from './epoch-watch.js';
export type { PartitionCondition, PartitionStatus } from './partition-status.js';
export { explainFinding, FINDING_KINDS, type Finding, type FindingKind } from './findings.js';
export { RebuildService, type RebuildOptions } from './rebuild.service.js';
export { type JobRun, ReconciliationJob } from './reconciliation.job.js';
export { ReconciliationHttpModule, ReconciliationModule, ReconciliationWatchModule } from './reconciliation.module.js';
export { ReconciliationService, type InspectOptions, type RepairOptions } from './reconciliation.service.js';
export * from './reports.js';
export { judge, judgeBuyer, judgeSale, type BuyerFacts, type RecordFacts, type SaleFacts } from './rules.js';
