import { Controller, Get, Header, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import { ApiAcceptedResponse, ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Buyer, CurrentUser, type Identity, identityOf } from '#auth';
import { ApiProblems, IdParam, IgnoreBody, ProblemException, requireId } from '#http';
import type { OrderView } from '#orders';
import { AdmissionService } from './admission/admission.service.js';
import { OrderStatusService } from './order-status.service.js';
import { AcceptedOrderModel, OrderModel, OwnOrdersModel } from './order.model.js';
import { answerPurchase } from './purchase-answer.js';

const ID = { type: 'string', pattern: '^[1-9][0-9]{0,18}$' } as const;
const RETRY_AFTER_SECONDS = '1';

/** Purchases of a voucher, and the orders that came of them. */
@ApiTags('orders')
@Buyer()
@Controller('v1/vouchers/:voucherId/orders')
@ApiParam({ name: 'voucherId', schema: ID })
export class VoucherOrderController {
  constructor(
    private readonly admissions: AdmissionService,
    private readonly status: OrderStatusService,
  ) {}

  @Post()
  @Buyer()
  @IgnoreBody()
  @HttpCode(202)
  @ApiOperation({
    operationId: 'buy',
    summary: 'Buy one unit',
    description:
      'Takes no body. Accepted orders are QUEUED and stored within moments; read them at Location. Safe to repeat: who has an order hears DUPLICATE_ORDER with its id.',
  })
  @ApiAcceptedResponse({
    type: AcceptedOrderModel,
    headers: { Location: { description: 'Where the order is read', schema: { type: 'string' } } },
  })
  @ApiProblems(
    'UNAUTHENTICATED',
    'INVALID_ARGUMENT',
    'RATE_LIMITED',
    'VOUCHER_NOT_FOUND',
    'UNAVAILABLE',
    'OVERLOADED',
    'OUTCOME_UNKNOWN',
    'NOT_STARTED',
    'DUPLICATE_ORDER',
    'ENDED',
    'SOLD_OUT',
  )
  async buy(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    // The one hot handler takes its parameters itself: each decorated one costs two promises and a walk through the pipes.
    const voucherId = requireId((request.params as { voucherId?: unknown }).voucherId, 'voucherId');
    const outcome = await this.admissions.admit(voucherId, identityOf(request).userId);
    answerPurchase(request, reply, voucherId, outcome);
  }

  @Get('mine')
  @Buyer()
  @Header('cache-control', 'no-store')
  @ApiOperation({
    operationId: 'listOwnOrdersOfVoucher',
    summary: 'My orders of this voucher, newest first',
    description: 'While the database is away: what the register knows, with Retry-After.',
  })
  @ApiOkResponse({ type: OwnOrdersModel })
  @ApiProblems('UNAUTHENTICATED', 'INVALID_ARGUMENT', 'VOUCHER_NOT_FOUND', 'UNAVAILABLE')
  async listOwn(
    @CurrentUser() buyer: Identity,
    @Param('voucherId', IdParam) voucherId: string,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<{ items: readonly OrderView[] }> {
    const answer = await this.status.listOwn(voucherId, buyer.userId);
    switch (answer.kind) {
      case 'LIST':
        if (!answer.complete || answer.items.some(({ status }) => status === 'QUEUED')) askAgainSoon(reply);
        return { items: answer.items };
      case 'VOUCHER_NOT_FOUND':
      case 'UNAVAILABLE':
        throw new ProblemException(answer.kind);
    }
  }

  @Get(':orderId')
  @Buyer()
  @Header('cache-control', 'no-store')
  @ApiOperation({
    operationId: 'getOrder',
    summary: 'One order, for its buyer or an administrator',
    description: 'A QUEUED order carries Retry-After.',
  })
  @ApiParam({ name: 'orderId', schema: ID })
  @ApiOkResponse({ type: OrderModel })
  @ApiProblems('UNAUTHENTICATED', 'INVALID_ARGUMENT', 'ORDER_NOT_FOUND', 'UNAVAILABLE')
  async find(
    @CurrentUser() caller: Identity,
    @Param('voucherId', IdParam) voucherId: string,
    @Param('orderId', IdParam) orderId: string,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<OrderView> {
    const answer = await this.status.find(voucherId, orderId, caller);
    switch (answer.kind) {
      case 'FOUND':
        if (answer.order.status === 'QUEUED') askAgainSoon(reply);
        return answer.order;
      case 'NOT_FOUND':
        throw new ProblemException('ORDER_NOT_FOUND');
      case 'UNAVAILABLE':
        throw new ProblemException('UNAVAILABLE');
    }
  }
}

function askAgainSoon(reply: FastifyReply): void {
  reply.header('retry-after', RETRY_AFTER_SECONDS);
}
