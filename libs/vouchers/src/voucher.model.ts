import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import type { VoucherPage, VoucherStatus, VoucherView } from './voucher.types.js';

/** OpenAPI: a voucher. */
export class VoucherModel implements VoucherView {
  @ApiProperty({ example: '17' })
  voucherId!: string;

  @ApiPropertyOptional({ example: '1' })
  shopId?: string;

  @ApiProperty({ example: '100 for 80' })
  title!: string;

  @ApiPropertyOptional()
  subTitle?: string;

  @ApiPropertyOptional()
  rules?: string;

  @ApiProperty({ type: 'integer', description: 'Cents to pay', example: 8000 })
  payValue!: number;

  @ApiProperty({ type: 'integer', description: 'Cents it is worth', example: 10000 })
  actualValue!: number;

  @ApiProperty({ type: 'integer', description: 'Units offered', example: 500 })
  stock!: number;

  @ApiProperty({ type: 'integer', description: 'Units free to buy', example: 123 })
  unitsLeft!: number;

  @ApiProperty({ format: 'date-time', example: '2026-11-30T12:00:00.000Z' })
  beginTime!: string;

  @ApiProperty({ format: 'date-time', example: '2026-11-30T14:00:00.000Z' })
  endTime!: string;

  @ApiProperty({ enum: ['NOT_STARTED', 'ON_SALE', 'SOLD_OUT', 'ENDED'] })
  status!: VoucherStatus;

  @ApiProperty({ format: 'date-time', description: 'For a countdown that does not trust the own clock' })
  serverTime!: string;
}

/** OpenAPI: one page of vouchers. */
export class VoucherPageModel implements VoucherPage {
  @ApiProperty({ type: [VoucherModel] })
  items!: VoucherModel[];

  @ApiPropertyOptional({ description: 'Absent on the last page' })
  nextCursor?: string;
}
