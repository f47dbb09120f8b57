import { Module } from '@nestjs/common';
import { OrdersModule } from '#orders';
import { RedisModule } from '#redis';
import { SaleRegister, SaleRegisterModule, SequenceLease } from '#sale-register';
import { VouchersModule } from '#vouchers';
import { AdmissionBatcher } from './admission/admission-batcher.js';
import { AdmissionService } from './admission/admission.service.js';
import { RebuildWishes } from './admission/rebuild-wishes.js';
import { RefusalMemory } from './admission/refusal-memory.js';
import { RedisIdWorker } from './admission/redis-id-worker.js';
import { MarkReader } from './mark.reader.js';
import { MyOrdersController } from './my-orders.controller.js';
import { OrderStatusService } from './order-status.service.js';
import { VoucherOrderController } from './voucher-order.controller.js';

/** The counter of order ids: `icr:order:<day>`. */
const ORDER_SEQUENCE = 'order';

/** The request wing: purchases, and what buyers may know of their orders. */
@Module({
  imports: [RedisModule, SaleRegisterModule, OrdersModule, VouchersModule],
  controllers: [VoucherOrderController, MyOrdersController],
  providers: [
    {
      provide: AdmissionBatcher,
      inject: [SaleRegister],
      useFactory: (register: SaleRegister) => new AdmissionBatcher(register),
    },
    {
      provide: RedisIdWorker,
      inject: [SequenceLease],
      useFactory: (leases: SequenceLease) =>
        new RedisIdWorker(async (day, size) => (await leases.lease(ORDER_SEQUENCE, day, size)).first),
    },
    RebuildWishes,
    RefusalMemory,
    AdmissionService,
    MarkReader,
    OrderStatusService,
  ],
  exports: [AdmissionService, OrderStatusService],
})
export class VoucherOrderModule {}
