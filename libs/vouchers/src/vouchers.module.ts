import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseModule } from '#database';
import { OrdersModule } from '#orders';
import { RedisModule } from '#redis';
import { SaleRegisterModule } from '#sale-register';
import { IdempotencyKeyRepository } from './idempotency-key.repository.js';
import { KnownVouchers } from './known-vouchers.js';
import { SalePublisher } from './sale.publisher.js';
import { SeckillVoucher } from './seckill-voucher.entity.js';
import { StockChangeService } from './stock-change.service.js';
import { VoucherController } from './voucher.controller.js';
import { Voucher } from './voucher.entity.js';
import { VoucherReader } from './voucher.reader.js';
import { VoucherRepository } from './voucher.repository.js';
import { VoucherService } from './voucher.service.js';

const PROVIDERS = [
  VoucherRepository,
  IdempotencyKeyRepository,
  KnownVouchers,
  SalePublisher,
  VoucherReader,
  VoucherService,
  StockChangeService,
];
const EXPORTS = [VoucherReader, VoucherService, StockChangeService, SalePublisher];

/** What vouchers are and do, without HTTP: for processes that serve no API. */
@Module({
  imports: [
    DatabaseModule,
    RedisModule,
    SaleRegisterModule,
    OrdersModule,
    TypeOrmModule.forFeature([Voucher, SeckillVoucher]),
  ],
  providers: PROVIDERS,
  exports: EXPORTS,
})
export class VouchersModule {}

/** The calls of /v1/vouchers. */
@Module({ imports: [VouchersModule], controllers: [VoucherController], exports: [VouchersModule] })
export class VouchersHttpModule {}
