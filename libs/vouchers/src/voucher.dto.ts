import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { MaxLength, MinLength, registerDecorator, ValidateIf, type ValidationArguments } from 'class-validator';
import { IsCanonicalId, IsWholeNumber, IsZonedIsoTime, parseZonedIsoTime } from '#http';
import { VOUCHER_LIMITS, type NewVoucher } from './voucher.types.js';

const { units, cents, titleLength, subTitleLength, rulesLength } = VOUCHER_LIMITS;

/** Text that PostgreSQL stores unchanged: no NUL, no half of a surrogate pair. */
function IsPlainText(): PropertyDecorator {
  return (target, propertyName) =>
    registerDecorator({
      name: 'isPlainText',
      target: target.constructor,
      propertyName: propertyName as string,
      options: { message: '$property must be text without NUL characters and unpaired surrogates' },
      validator: {
        validate: (value: unknown) =>
          typeof value === 'string' && !value.includes('\0') && !/\p{Surrogate}/u.test(value),
      },
    });
}

/** An instant after that of `property`, and not before 1970: the register counts milliseconds from there. */
function IsAfter(property: string): PropertyDecorator {
  return (target, propertyName) =>
    registerDecorator({
      name: 'isAfter',
      target: target.constructor,
      propertyName: propertyName as string,
      options: { message: `$property must be after ${property}` },
      validator: {
        validate: (value: unknown, options?: ValidationArguments) => {
          const begin = parseZonedIsoTime((options?.object as Record<string, unknown> | undefined)?.[property]);
          const end = parseZonedIsoTime(value);
          // A bad time of either side is named by its own rule.
          return begin === undefined || end === undefined || end > begin;
        },
      },
    });
}

function IsSince1970(): PropertyDecorator {
  return (target, propertyName) =>
    registerDecorator({
      name: 'isSince1970',
      target: target.constructor,
      propertyName: propertyName as string,
      options: { message: '$property must not be before 1970-01-01T00:00:00Z' },
      validator: { validate: (value: unknown) => (parseZonedIsoTime(value) ?? 0) >= 0 },
    });
}

/** Absent is fine, null is not. */
const IsOptionalText = (): PropertyDecorator => ValidateIf((_, value) => value !== undefined);

/** Body of POST /v1/vouchers. */
export class CreateVoucherDto {
  @ApiProperty({ example: '1', description: 'Id of the shop' })
  @IsCanonicalId()
  shopId!: string;

  @ApiProperty({ minLength: 1, maxLength: titleLength, example: '100 for 80' })
  @IsPlainText()
  @MinLength(1)
  @MaxLength(titleLength)
  title!: string;

  @ApiPropertyOptional({ maxLength: subTitleLength, example: 'Monday to Friday' })
  @IsOptionalText()
  @IsPlainText()
  @MaxLength(subTitleLength)
  subTitle?: string;

  @ApiPropertyOptional({ maxLength: rulesLength, example: 'One per person.' })
  @IsOptionalText()
  @IsPlainText()
  @MaxLength(rulesLength)
  rules?: string;

  @ApiProperty({ type: 'integer', minimum: 0, maximum: cents, example: 8000, description: 'Cents to pay' })
  @IsWholeNumber(0, cents)
  payValue!: number;

  @ApiProperty({ type: 'integer', minimum: 1, maximum: cents, example: 10000, description: 'Cents it is worth' })
  @IsWholeNumber(1, cents)
  actualValue!: number;

  @ApiProperty({ type: 'integer', minimum: 1, maximum: units, example: 500, description: 'Units offered' })
  @IsWholeNumber(1, units)
  stock!: number;

  @ApiProperty({ format: 'date-time', example: '2026-11-30T12:00:00Z' })
  @IsZonedIsoTime()
  @IsSince1970()
  beginTime!: string;

  @ApiProperty({ format: 'date-time', example: '2026-11-30T14:00:00Z', description: 'After beginTime' })
  @IsZonedIsoTime()
  @IsAfter('beginTime')
  endTime!: string;
}

/** Body of PATCH /v1/vouchers/:voucherId/stock. */
export class ChangeStockDto {
  @ApiProperty({
    type: 'integer',
    minimum: -units,
    maximum: units,
    example: 100,
    description: 'Units to add, or (below 0) to withdraw; not 0',
  })
  @IsWholeNumber(-units, units)
  @IsNotZero()
  delta!: number;
}

function IsNotZero(): PropertyDecorator {
  return (target, propertyName) =>
    registerDecorator({
      name: 'isNotZero',
      target: target.constructor,
      propertyName: propertyName as string,
      options: { message: '$property must not be 0' },
      validator: { validate: (value: unknown) => value !== 0 },
    });
}

/** Query of GET /v1/vouchers. */
export class ListVouchersQuery {
  @ApiProperty({ example: '1', description: 'Id of the shop' })
  @IsCanonicalId()
  shopId!: string;

  @ApiPropertyOptional({ description: 'nextCursor of the page before' })
  @ValidateIf((_, value) => value !== undefined && value !== '')
  @IsCanonicalId({ message: 'cursor must be the nextCursor of a page' })
  cursor?: string;
}

/** The checked body as the service takes it. */
export function newVoucher(dto: CreateVoucherDto): NewVoucher {
  const beginMs = parseZonedIsoTime(dto.beginTime);
  const endMs = parseZonedIsoTime(dto.endTime);
  if (beginMs === undefined || endMs === undefined) throw new TypeError('the times of a voucher were not checked');
  return {
    shopId: dto.shopId,
    title: dto.title,
    ...(dto.subTitle === undefined ? {} : { subTitle: dto.subTitle }),
    ...(dto.rules === undefined ? {} : { rules: dto.rules }),
    payValue: dto.payValue,
    actualValue: dto.actualValue,
    stock: dto.stock,
    beginMs,
    endMs,
  };
}
