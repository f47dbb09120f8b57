import { type DynamicModule, Module } from '@nestjs/common';
import { DatabaseModule } from '#database';
import { RedisModule } from '#redis';
import { SaleRegisterModule } from '#sale-register';
import { StreamConsumerModule } from '#stream-consumer';
import { DurabilityWatch } from './durability-watch.js';
import { HealthController, READY_QUESTION, type ReadyQuestion } from './health.controller.js';
import { MetricsController } from './metrics.controller.js';
import { OrdersHealth } from './orders-health.js';
import { PurchasesHealth } from './purchases-health.js';
import { StreamSampler } from './stream-sampler.js';
import { StreamController } from './stream.controller.js';

const ROOMS = [RedisModule, DatabaseModule, SaleRegisterModule, StreamConsumerModule];
const PROVIDERS = [DurabilityWatch, StreamSampler, OrdersHealth, PurchasesHealth];

/** Health and metrics of a process. */
@Module({})
export class HealthModule {
  /** The API: traffic may come when purchases are answered truthfully; operators see the stream (needs AuthModule). */
  static forApi(): DynamicModule {
    return healthModule('purchases', [HealthController, MetricsController, StreamController]);
  }

  /** A worker: it is ready when orders move. Nothing here asks who is asking. */
  static forWorker(): DynamicModule {
    return healthModule('orders', [HealthController, MetricsController]);
  }
}

function healthModule(question: ReadyQuestion, controllers: NonNullable<DynamicModule['controllers']>): DynamicModule {
  return {
    module: HealthModule,
    imports: ROOMS,
    controllers,
    providers: [...PROVIDERS, { provide: READY_QUESTION, useValue: question }],
  };
}
