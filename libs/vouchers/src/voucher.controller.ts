import {
  Body,
  Controller,
  Get,
  Headers,
  HttpCode,
  Param,
  Patch,
  Post,
  Query,
  Res,
  UseInterceptors,
} from '@nestjs/common';
import { ApiCreatedResponse, ApiHeader, ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { CurrentUser, Public, Roles, type Identity } from '#auth';
import { AnswerInTimeInterceptor, ApiProblems, IdParam, ProblemException } from '#http';
import { IDEMPOTENCY_KEY_LIFE_HOURS, IDEMPOTENCY_KEY_MAX_LENGTH, namedCall } from './idempotency-key.repository.js';
import { StockChangeService } from './stock-change.service.js';
import { ChangeStockDto, CreateVoucherDto, ListVouchersQuery, newVoucher } from './voucher.dto.js';
import { VoucherPageModel, VoucherModel } from './voucher.model.js';
import { VoucherReader } from './voucher.reader.js';
import { VoucherService, type VoucherAnswer } from './voucher.service.js';
import type { VoucherPage, VoucherView } from './voucher.types.js';

const IDEMPOTENCY_HEADER = {
  name: 'Idempotency-Key',
  required: false,
  description:
    `Names the call: repeated with the same key and body it has one effect and the same answer (marked Idempotency-Replayed: true). ` +
    `A window that the client counted anew from its clock, within a minute, is the same body. ` +
    `1 to ${IDEMPOTENCY_KEY_MAX_LENGTH} visible ASCII characters, kept for ${IDEMPOTENCY_KEY_LIFE_HOURS} hours, apart for each caller.`,
  schema: { type: 'string', minLength: 1, maxLength: IDEMPOTENCY_KEY_MAX_LENGTH },
} as const;
const VOUCHER_ID = { name: 'voucherId', schema: { type: 'string', pattern: '^[1-9][0-9]{0,18}$' } } as const;

const WRITE_PROBLEMS = [
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'INVALID_ARGUMENT',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'IDEMPOTENCY_KEY_IN_USE',
  'IDEMPOTENCY_KEY_REUSED',
  'UNAVAILABLE',
  'OUTCOME_UNKNOWN',
] as const;

/** Vouchers: made and restocked by administrators, read by anyone. */
@ApiTags('vouchers')
@UseInterceptors(AnswerInTimeInterceptor)
@Controller('v1/vouchers')
export class VoucherController {
  constructor(
    private readonly vouchers: VoucherService,
    private readonly stock: StockChangeService,
    private readonly reader: VoucherReader,
  ) {}

  @Post()
  @Roles('admin')
  @ApiOperation({
    operationId: 'createVoucher',
    summary: 'Store a voucher and put it on sale',
    description: 'While the register is closed the voucher is stored all the same and put on sale by the rebuild.',
  })
  @ApiHeader(IDEMPOTENCY_HEADER)
  @ApiCreatedResponse({ type: VoucherModel })
  @ApiProblems(...WRITE_PROBLEMS)
  async create(
    @CurrentUser() caller: Identity,
    @Body() body: CreateVoucherDto,
    @Headers('idempotency-key') key: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<VoucherView> {
    const { beginMs, endMs, ...rest } = newVoucher(body);
    const call = namedCall(key, caller.userId, 'POST /v1/vouchers', rest, [beginMs, endMs]);
    const answer = await this.vouchers.create({ beginMs, endMs, ...rest }, `user:${caller.userId}`, call);
    reply.header('location', `/v1/vouchers/${answer.voucher.voucherId}`);
    return told(answer, reply);
  }

  @Get()
  @Public()
  @ApiOperation({ operationId: 'listVouchers', summary: 'The vouchers of a shop, newest first' })
  @ApiOkResponse({ type: VoucherPageModel })
  @ApiProblems('INVALID_ARGUMENT', 'UNAVAILABLE')
  list(@Query() query: ListVouchersQuery): Promise<VoucherPage> {
    return this.reader.listVouchers(query.shopId, query.cursor === '' ? undefined : query.cursor);
  }

  @Get(':voucherId')
  @Public()
  @ApiOperation({ operationId: 'getVoucher', summary: 'A voucher with its units left and the server time' })
  @ApiParam(VOUCHER_ID)
  @ApiOkResponse({ type: VoucherModel })
  @ApiProblems('INVALID_ARGUMENT', 'VOUCHER_NOT_FOUND', 'UNAVAILABLE')
  async find(@Param('voucherId', IdParam) voucherId: string): Promise<VoucherView> {
    const voucher = await this.reader.findVoucher(voucherId);
    if (voucher === undefined) throw new ProblemException('VOUCHER_NOT_FOUND');
    return voucher;
  }

  @Patch(':voucherId/stock')
  @HttpCode(200)
  @Roles('admin')
  @ApiOperation({
    operationId: 'changeStock',
    summary: 'Add or withdraw units, relative to what is there; safe during the rush',
  })
  @ApiParam(VOUCHER_ID)
  @ApiHeader(IDEMPOTENCY_HEADER)
  @ApiOkResponse({ type: VoucherModel })
  @ApiProblems(...WRITE_PROBLEMS, 'VOUCHER_NOT_FOUND', 'INSUFFICIENT_UNITS')
  async changeStock(
    @CurrentUser() caller: Identity,
    @Param('voucherId', IdParam) voucherId: string,
    @Body() body: ChangeStockDto,
    @Headers('idempotency-key') key: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<VoucherView> {
    const call = namedCall(key, caller.userId, `PATCH /v1/vouchers/${voucherId}/stock`, { ...body });
    return told(await this.stock.change(voucherId, body.delta, `user:${caller.userId}`, call), reply);
  }
}

function told({ voucher, replayed }: VoucherAnswer, reply: FastifyReply): VoucherView {
  if (replayed) reply.header('idempotency-replayed', 'true');
  return voucher;
}
