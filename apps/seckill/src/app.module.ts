import { type DynamicModule, Module } from '@nestjs/common';
import { AuthModule } from '#auth';
import { ConfigModule, type Settings } from '#config';
import { DatabaseModule } from '#database';
import { DeadLettersModule } from '#dead-letters';
import { HealthModule } from '#health';
import { HmdpModule } from '#hmdp';
import { HttpModule } from '#http';
import { OrdersModule } from '#orders';
import { ReconciliationHttpModule, ReconciliationWatchModule } from '#reconciliation';
import { RedisModule } from '#redis';
import { SaleRegisterModule } from '#sale-register';
import { StreamConsumerModule } from '#stream-consumer';
import { VoucherOrderModule } from '#voucher-order';
import { VouchersHttpModule } from '#vouchers';

/** The HTTP API and the order consumer in one process. The import list is the architecture, front to back. */
@Module({})
export class AppModule {
  static forRoot(settings: Settings): DynamicModule {
    return {
      module: AppModule,
      imports: [
        // The door
        ConfigModule.forRoot(settings),
        HttpModule,
        AuthModule,
        // The request wing: decides and answers
        VoucherOrderModule,
        VouchersHttpModule,
        ...(settings.hmdp.enabled ? [HmdpModule] : []),
        // Between the wings: the register of rights
        SaleRegisterModule,
        RedisModule,
        // The drain wing: carries what was accepted into the record
        StreamConsumerModule,
        OrdersModule,
        DatabaseModule,
        // Who watches, mends and tells
        ReconciliationWatchModule,
        ReconciliationHttpModule,
        DeadLettersModule,
        HealthModule.forApi(),
      ],
    };
  }
}
