import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseModule } from '#database';
import { RedisModule } from '#redis';
import { BatchWriter } from './batch-writer.js';
import { ORDER_ENTITIES } from './entities.js';
import { OrderReader } from './order.reader.js';
import { OrderRejector } from './order-rejector.js';
import { OrderRepository } from './order.repository.js';
import { OrderTransaction } from './order-transaction.js';
import { PartitionFence } from './partition-fence.js';
import { StockLedger } from './stock-ledger.js';

/** The record of orders: storing them in batches, rejecting them, reading them. */
@Module({
  imports: [DatabaseModule, RedisModule, TypeOrmModule.forFeature(ORDER_ENTITIES)],
  providers: [PartitionFence, OrderTransaction, OrderRejector, BatchWriter, OrderRepository, OrderReader, StockLedger],
  exports: [OrderRepository, OrderReader, StockLedger],
})
export class OrdersModule {}
