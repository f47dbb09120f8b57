import { ApiProperty } from '@nestjs/swagger';
import type { HealthReport } from './health-report.js';

/** How a health report looks in the OpenAPI document. */
export class HealthReportModel implements HealthReport {
  @ApiProperty({ enum: ['ok', 'degraded', 'down'] })
  status!: HealthReport['status'];

  @ApiProperty({
    type: 'object',
    additionalProperties: {
      type: 'object',
      required: ['status'],
      properties: { status: { type: 'string', enum: ['ok', 'degraded', 'down'] }, reason: { type: 'string' } },
      additionalProperties: true,
    },
    example: { redis: { status: 'ok' }, database: { status: 'degraded', reason: 'connection refused' } },
  })
  parts!: HealthReport['parts'];
}

class StreamConsumerModel {
  @ApiProperty()
  name!: string;
  @ApiProperty({ type: 'integer' })
  pending!: number;
  @ApiProperty({ type: 'integer', description: 'Milliseconds' })
  idleMs!: number;
}

const wholeOrNull = { type: 'integer', nullable: true } as const;

/** One partition's stream as operators see it. */
export class StreamPartitionModel {
  @ApiProperty({ type: 'integer' })
  partition!: number;
  @ApiProperty({ type: 'integer' })
  length!: number;
  @ApiProperty({ ...wholeOrNull, description: 'Undelivered entries; null where the server cannot tell' })
  lag!: number | null;
  @ApiProperty({ type: 'integer' })
  pending!: number;
  @ApiProperty({ ...wholeOrNull, description: 'Milliseconds; null where nothing is pending' })
  oldestPendingMs!: number | null;
  @ApiProperty({ ...wholeOrNull, description: 'Milliseconds; null where all is delivered' })
  oldestUndeliveredMs!: number | null;
  @ApiProperty({ type: [StreamConsumerModel] })
  consumers!: readonly StreamConsumerModel[];
  @ApiProperty({ type: 'integer' })
  deadLetters!: number;
}

export class StreamModel {
  @ApiProperty({ type: [StreamPartitionModel] })
  partitions!: readonly StreamPartitionModel[];
}
