import { Controller, Get, Inject, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiServiceUnavailableResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { Public } from '#auth';
import { HealthReportModel } from './health.model.js';
import type { HealthReport } from './health-report.js';
import { OrdersHealth } from './orders-health.js';
import { PurchasesHealth } from './purchases-health.js';

/** Which question GET /health/ready puts: `purchases` for the API, `orders` for a worker. */
export const READY_QUESTION = Symbol('READY_QUESTION');
export type ReadyQuestion = 'purchases' | 'orders';

/** Three questions to a process: does it live, may traffic come, do orders move. */
@ApiTags('health')
@Controller('health')
@Public()
export class HealthController {
  constructor(
    private readonly purchases: PurchasesHealth,
    private readonly orders: OrdersHealth,
    @Inject(READY_QUESTION) private readonly question: ReadyQuestion,
  ) {}

  @Get('live')
  @ApiOperation({ operationId: 'live', summary: 'Whether the process can answer; asks no dependency' })
  @ApiOkResponse({ type: HealthReportModel })
  live(): HealthReport {
    return { status: 'ok', parts: {} };
  }

  @Get('ready')
  @ApiOperation({
    operationId: 'ready',
    summary: 'Whether traffic may come: purchases are answered truthfully',
    description: 'A database that is away, or orders that do not move, degrade and do not take the API out of traffic.',
  })
  @ApiOkResponse({ type: HealthReportModel })
  @ApiServiceUnavailableResponse({ type: HealthReportModel, description: 'A part is down' })
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<HealthReport> {
    return answered(await (this.question === 'orders' ? this.orders : this.purchases).report(), reply);
  }

  @Get('orders')
  @ApiOperation({ operationId: 'ordersMove', summary: 'Whether orders move into the database' })
  @ApiOkResponse({ type: HealthReportModel })
  @ApiServiceUnavailableResponse({ type: HealthReportModel, description: 'Orders do not move; the parts say why' })
  async ordersMove(@Res({ passthrough: true }) reply: FastifyReply): Promise<HealthReport> {
    return answered(await this.orders.report(), reply);
  }
}

function answered(report: HealthReport, reply: FastifyReply): HealthReport {
  reply.header('cache-control', 'no-store');
  if (report.status === 'down') reply.code(503);
  return report;
}
