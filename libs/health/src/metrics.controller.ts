import { Controller, Get, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProduces, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { register } from 'prom-client';
import { Public } from '#auth';
import { showStreams } from './metrics.js';
import { StreamSampler } from './stream-sampler.js';

/** The metrics of this process, with the stream as it is at the scrape. */
@ApiTags('health')
@Controller('metrics')
@Public()
export class MetricsController {
  constructor(private readonly sampler: StreamSampler) {}

  /** Answers also while Redis is away: then without the stream gauges. */
  @Get()
  @ApiOperation({ operationId: 'getMetrics', summary: 'Metrics in the text format of Prometheus' })
  @ApiProduces('text/plain')
  @ApiOkResponse({ schema: { type: 'string' } })
  async read(@Res() reply: FastifyReply): Promise<void> {
    const reading = await this.sampler.read();
    showStreams(reading.ok ? reading.value : undefined);
    reply.header('content-type', register.contentType).send(await register.metrics());
  }
}
