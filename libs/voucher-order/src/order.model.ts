import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type { OrderStatus, OrderView } from '#orders';

const STATUSES: readonly OrderStatus[] = [
  'QUEUED',
  'UNPAID',
  'PAID',
  'USED',
  'CANCELLED',
  'REFUNDING',
  'REFUNDED',
  'REJECTED',
];

/** OpenAPI: the answer to a purchase that was accepted. */
export class AcceptedOrderModel {
  @ApiProperty({ example: '663519240192000001' })
  orderId!: string;

  @ApiProperty({ example: '17' })
  voucherId!: string;

  @ApiProperty({ enum: ['QUEUED'] })
  status!: 'QUEUED';
}

/** OpenAPI: an order. */
export class OrderModel implements OrderView {
  @ApiProperty({ example: '663519240192000001' })
  orderId!: string;

  @ApiProperty({ example: '17' })
  voucherId!: string;

  @ApiProperty({ example: '42' })
  userId!: string;

  @ApiProperty({ enum: STATUSES })
  status!: OrderStatus;

  @ApiPropertyOptional({ description: 'Why the order was rejected', example: 'NO_UNITS' })
  reason?: string;

  @ApiPropertyOptional({ type: 'integer', description: '1 balance, 2 Alipay, 3 WeChat' })
  payType?: number;

  @ApiProperty({ format: 'date-time' })
  createTime!: string;

  @ApiPropertyOptional({ format: 'date-time' })
  payTime?: string;

  @ApiPropertyOptional({ format: 'date-time' })
  useTime?: string;

  @ApiPropertyOptional({ format: 'date-time' })
  refundTime?: string;

  @ApiProperty({ format: 'date-time' })
  updateTime!: string;
}

/** OpenAPI: all of a buyer's orders of one voucher. */
export class OwnOrdersModel {
  @ApiProperty({ type: [OrderModel] })
  items!: OrderModel[];
}

/** OpenAPI: one page of a buyer's orders. */
export class OrderPageModel extends OwnOrdersModel {
  @ApiPropertyOptional({ description: 'Absent on the last page' })
  nextCursor?: string;
}
