import { Body, Controller, Get, Header, HttpCode, Param, Post, Req, UseInterceptors } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { CurrentUser, type Identity, Public, Roles } from '#auth';
import { AnswerInTimeInterceptor, IdParam } from '#http';
import { VoucherService } from '#vouchers';
import { type Envelope, fail, ok, TEXTS } from './envelope.js';
import { HmdpRoutes } from './hmdp-route.js';
import { Logins } from './logins.js';
import { readOrdinaryVoucher, readSeckillVoucher } from './new-voucher.js';
import { OrdinaryVoucherRepository } from './ordinary-voucher.repository.js';
import { ShopVouchersReader } from './shop-vouchers.reader.js';

/** hmdp's vouchers: read by anyone, made by administrators (hmdp lets anyone). */
@HmdpRoutes()
@UseInterceptors(AnswerInTimeInterceptor)
@Controller('voucher')
export class HmdpVoucherController {
  constructor(
    private readonly vouchers: VoucherService,
    private readonly ordinary: OrdinaryVoucherRepository,
    private readonly shops: ShopVouchersReader,
    private readonly logins: Logins,
  ) {}

  @Post()
  @Roles('admin')
  @HttpCode(200)
  @Header('cache-control', 'no-store')
  async createOrdinary(@Body() body: unknown): Promise<Envelope> {
    const reading = readOrdinaryVoucher(body);
    if (!reading.ok) return badFields(reading.fields);
    const id = await this.ordinary.insert(reading.voucher);
    this.shops.forget(reading.voucher.shopId);
    return ok(id);
  }

  @Post('seckill')
  @Roles('admin')
  @HttpCode(200)
  @Header('cache-control', 'no-store')
  async createSeckill(@CurrentUser() caller: Identity, @Body() body: unknown): Promise<Envelope> {
    const reading = readSeckillVoucher(body);
    if (!reading.ok) return badFields(reading.fields);
    const { voucher } = await this.vouchers.create(reading.voucher, `user:${caller.userId}`);
    this.shops.forget(reading.voucher.shopId);
    return ok(voucher.voucherId);
  }

  @Get('list/:shopId')
  @Public()
  @Header('cache-control', 'no-store')
  async list(@Param('shopId', IdParam) shopId: string, @Req() request: FastifyRequest): Promise<Envelope> {
    this.logins.renew(request.headers.authorization);
    return ok(await this.shops.list(shopId));
  }
}

function badFields(fields: readonly string[]): Envelope {
  return fail(`${TEXTS.BAD_FIELDS}：${fields.join('、')}`);
}
