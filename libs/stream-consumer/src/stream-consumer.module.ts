import { Module } from '@nestjs/common';
import { OrdersModule } from '#orders';
import { RedisModule } from '#redis';
import { SaleRegisterModule } from '#sale-register';
import { StreamConsumer } from './stream-consumer.js';

/** The drain wing: reads the stream of accepted orders and has them stored. Needs the global SETTINGS of ConfigModule. */
@Module({
  imports: [RedisModule, SaleRegisterModule, OrdersModule],
  providers: [StreamConsumer],
  exports: [StreamConsumer],
})
export class StreamConsumerModule {}
