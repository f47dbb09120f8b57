import { Inject, Module } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { DatabaseModule } from '#database';
import type { RouteFacts } from '#http';
import { RedisModule } from '#redis';
import { VoucherOrderModule } from '#voucher-order';
import { VouchersModule } from '#vouchers';
import { HmdpErrorFilter } from './hmdp-error.filter.js';
import { LoginCodes } from './login-codes.js';
import { LoginKeys } from './login-keys.js';
import { Logins } from './logins.js';
import { OrdinaryVoucherRepository } from './ordinary-voucher.repository.js';
import { ShopVouchersReader } from './shop-vouchers.reader.js';
import { UserController } from './user.controller.js';
import { UserRepository } from './user.repository.js';
import { HmdpVoucherController } from './voucher.controller.js';
import { HmdpVoucherOrderController } from './voucher-order.controller.js';

/** hmdp's routes at the root path, for its front ends and load plans: a thin translation over the rooms that sell. */
@Module({
  imports: [DatabaseModule, RedisModule, VouchersModule, VoucherOrderModule],
  controllers: [UserController, HmdpVoucherController, HmdpVoucherOrderController],
  providers: [
    HmdpErrorFilter,
    LoginCodes,
    LoginKeys,
    Logins,
    OrdinaryVoucherRepository,
    ShopVouchersReader,
    UserRepository,
  ],
})
export class HmdpModule {
  /**
   * Errors that come before a handler (a body that cannot be read) bypass the controllers' filter: the routes themselves answer them. Said here, for
   * routes are registered before `onModuleInit`.
   */
  constructor(@Inject(HttpAdapterHost) host: HttpAdapterHost<FastifyAdapter>, errors: HmdpErrorFilter) {
    const answer = (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void =>
      errors.answer(error, request, reply);
    host.httpAdapter.getInstance().addHook('onRoute', (route) => {
      if ((route.config as RouteFacts | undefined)?.dialect === 'hmdp') route.errorHandler = answer;
    });
  }
}
