import { Controller, Get } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Roles } from '#auth';
import { ProblemException } from '#http';
import { StreamModel } from './health.model.js';
import { StreamSampler } from './stream-sampler.js';

/** The order streams as operators see them. */
@ApiTags('admin')
@Controller('v1/admin/stream')
@Roles('admin')
export class StreamController {
  constructor(private readonly sampler: StreamSampler) {}

  @Get()
  @ApiOperation({
    operationId: 'getStream',
    summary: 'Length, lag, pending, consumers and dead letters of each partition',
  })
  @ApiOkResponse({ type: StreamModel })
  async read(): Promise<StreamModel> {
    const reading = await this.sampler.read();
    if (!reading.ok) throw new ProblemException('UNAVAILABLE');
    return {
      partitions: reading.value.map((stats) => ({
        partition: stats.partition,
        length: stats.length,
        lag: stats.lag ?? null,
        pending: stats.pending,
        oldestPendingMs: stats.oldestPendingMs ?? null,
        oldestUndeliveredMs: stats.oldestUndeliveredMs ?? null,
        consumers: stats.consumers,
        deadLetters: stats.deadLetters,
      })),
    };
  }
}
