import { Controller, HttpCode, Param, Post } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiParam, ApiProperty, ApiTags } from '@nestjs/swagger';
import { CurrentUser, Roles, type Identity } from '#auth';
import { IdParam, IgnoreBody, ProblemException } from '#http';
import { RebuildService } from './rebuild.service.js';
import type { RebuildReport } from './reports.js';

/** The answer of a rebuild. */
export class RebuildModel {
  @ApiProperty({ example: '17' }) voucherId!: string;
  @ApiProperty({ example: 0 }) partition!: number;
  @ApiProperty({ description: 'Buyers marked after the rebuild', example: 30 }) marks!: number;
  @ApiProperty({ description: 'Marks that were set anew, or to another order' }) marksSet!: number;
  @ApiProperty({ description: 'Marks of orders that hold no unit, taken away' }) marksRemoved!: number;
  @ApiProperty({ description: 'Stream entries appended again, same order id' }) entriesAppended!: number;
  @ApiProperty({ description: 'Milliseconds' }) durationMs!: number;
}

/** Rebuilding by hand. */
@ApiTags('admin')
@Controller('v1/admin/vouchers')
export class RebuildController {
  constructor(private readonly rebuilds: RebuildService) {}

  /** Rebuilds the voucher; where its partition is closed, the whole partition, for nothing less opens the voucher's sale. */
  @Post(':voucherId/rebuild')
  @HttpCode(200)
  @Roles('admin')
  @IgnoreBody()
  @ApiOperation({
    operationId: 'rebuildVoucher',
    summary: "Rebuild a voucher's Redis side from the database and the stream",
    description: 'Purchases of this voucher are refused as unavailable meanwhile. Idempotent, safe during traffic.',
  })
  @ApiParam({ name: 'voucherId', schema: { type: 'string', pattern: '^[1-9][0-9]{0,18}$' } })
  @ApiOkResponse({ type: RebuildModel })
  async rebuild(
    @Param('voucherId', IdParam) voucherId: string,
    @CurrentUser() caller: Identity,
  ): Promise<RebuildModel> {
    const actor = `user:${caller.userId}`;
    let report = await this.rebuilds.rebuildVoucher(voucherId, { actor });
    if (report?.outcome === 'PARTITION_CLOSED') {
      await this.rebuilds.rebuildPartition(report.partition, { actor });
      report = await this.rebuilds.rebuildVoucher(voucherId, { actor });
    }
    return answer(voucherId, report);
  }
}

function answer(voucherId: string, report: RebuildReport | undefined): RebuildModel {
  switch (report?.outcome) {
    case 'OPENED':
    case 'NOT_NEEDED': {
      const { partition, marks, marksSet, marksRemoved, entriesAppended, durationMs } = report;
      return { voucherId, partition, marks, marksSet, marksRemoved, entriesAppended, durationMs };
    }
    case 'UNKNOWN_VOUCHER':
      throw new ProblemException('VOUCHER_NOT_FOUND');
    // Overtaken, closed, or not settled: all pass, and a repeated call is safe.
    case 'LOST':
    case 'PARTITION_CLOSED':
    case 'NO_HISTORY':
    case 'UNSETTLED':
    case undefined:
      throw new ProblemException('UNAVAILABLE');
  }
}
