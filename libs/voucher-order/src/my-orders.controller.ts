import { Controller, Get, Header, Query, UseInterceptors } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiPropertyOptional, ApiTags } from '@nestjs/swagger';
import { IsOptional, IsString } from 'class-validator';
import { Buyer, CurrentUser, type Identity } from '#auth';
import { AnswerInTimeInterceptor, ApiProblems, invalidArgument } from '#http';
import { OrderReader, type OrderView } from '#orders';
import { OrderPageModel } from './order.model.js';

/** Query of GET /v1/me/orders. */
export class MyOrdersQuery {
  @ApiPropertyOptional({ description: 'nextCursor of the page before' })
  @IsOptional()
  @IsString()
  cursor?: string;
}

/** A buyer's stored orders over all vouchers. */
@ApiTags('orders')
@UseInterceptors(AnswerInTimeInterceptor)
@Controller('v1/me/orders')
export class MyOrdersController {
  constructor(private readonly orders: OrderReader) {}

  @Get()
  @Buyer()
  @Header('cache-control', 'no-store')
  @ApiOperation({
    operationId: 'listMyOrders',
    summary: 'My stored orders, newest first',
    description: 'An order that is still QUEUED is not among them: read it at its own address.',
  })
  @ApiOkResponse({ type: OrderPageModel })
  @ApiProblems('UNAUTHENTICATED', 'INVALID_ARGUMENT', 'UNAVAILABLE')
  async list(
    @CurrentUser() buyer: Identity,
    @Query() query: MyOrdersQuery,
  ): Promise<{ items: readonly OrderView[]; nextCursor?: string }> {
    const cursor = query.cursor === '' ? undefined : query.cursor;
    const page = await this.orders.listOrdersOfUser(buyer.userId, cursor);
    if (page.kind === 'INVALID_CURSOR')
      throw invalidArgument({ parameter: 'cursor', detail: 'cursor must be the nextCursor of a page' });
    return page.nextCursor === undefined ? { items: page.items } : { items: page.items, nextCursor: page.nextCursor };
  }
}
