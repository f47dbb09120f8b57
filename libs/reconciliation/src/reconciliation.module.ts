import { Module } from '@nestjs/common';
import { DatabaseModule } from '#database';
import { OrdersModule } from '#orders';
import { RedisModule } from '#redis';
import { SaleRegisterModule } from '#sale-register';
import { VouchersModule } from '#vouchers';
import { EpochWatch } from './epoch-watch.js';
import { LockKeeper } from './lock-keeper.js';
import { RebuildController } from './rebuild.controller.js';
import { RebuildService } from './rebuild.service.js';
import { ReconciliationJob } from './reconciliation.job.js';
import { ReconciliationService } from './reconciliation.service.js';
import { RecordReader } from './record.reader.js';
import { ScriptRepairs } from './script-repairs.js';
import { StreamReader } from './stream-reader.js';
import { TimelineWatch } from './timeline-watch.js';
import { VoucherRebuild } from './voucher-rebuild.js';
import { VoucherSurvey } from './voucher-survey.js';

/** Looking, repairing and rebuilding when called, and nothing by itself: for the audit command. */
@Module({
  imports: [DatabaseModule, RedisModule, SaleRegisterModule, OrdersModule, VouchersModule],
  providers: [
    LockKeeper,
    RecordReader,
    StreamReader,
    VoucherSurvey,
    VoucherRebuild,
    ScriptRepairs,
    RebuildService,
    ReconciliationService,
  ],
  exports: [LockKeeper, RecordReader, RebuildService, ReconciliationService],
})
export class ReconciliationModule {}

/** The watch over the epochs and the periodic reconciliation: for every process that runs on. */
@Module({
  imports: [ReconciliationModule, OrdersModule, DatabaseModule, SaleRegisterModule],
  providers: [TimelineWatch, EpochWatch, ReconciliationJob],
  exports: [EpochWatch, ReconciliationModule],
})
export class ReconciliationWatchModule {}

/** The call /v1/admin/vouchers/:voucherId/rebuild. */
@Module({ imports: [ReconciliationModule], controllers: [RebuildController] })
export class ReconciliationHttpModule {}
