import { type DynamicModule, Module } from '@nestjs/common';
import { ConfigModule, type Settings } from '#config';
import { DatabaseModule } from '#database';
import { HealthModule } from '#health';
import { HttpModule } from '#http';
import { OrdersModule } from '#orders';
import { RedisModule } from '#redis';
import { SaleRegisterModule } from '#sale-register';
import { StreamConsumerModule } from '#stream-consumer';

/** The order consumer alone, with a small HTTP server for health and metrics. */
@Module({})
export class WorkerModule {
  static forRoot(settings: Settings): DynamicModule {
    return {
      module: WorkerModule,
      imports: [
        ConfigModule.forRoot(settings),
        HttpModule,
        SaleRegisterModule,
        RedisModule,
        StreamConsumerModule,
        OrdersModule,
        DatabaseModule,
        HealthModule.forWorker(),
      ],
    };
  }
}
