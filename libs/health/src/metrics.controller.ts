import { Controller, Get, Logger, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProduces, ApiTags } from '@nestjs/swagger';
import type { FastifyReply } from 'fastify';
import { register } from 'prom-client';
import { Public } from '#auth';
import { ProblemException } from '#http';
import { FleetSilentError, instanceMetrics } from '#lifecycle';
import { showStreams, streamMetrics } from './metrics.js';
import { StreamSampler } from './stream-sampler.js';

/** The metrics of this instance, all its processes together, with the stream as it is at the scrape. */
@ApiTags('health')
@Controller('metrics')
@Public()
export class MetricsController {
  private readonly logger = new Logger(MetricsController.name);

  constructor(private readonly sampler: StreamSampler) {}

  /** Answers also while Redis is away: then without the stream gauges. */
  @Get()
  @ApiOperation({ operationId: 'getMetrics', summary: 'Metrics in the text format of Prometheus' })
  @ApiProduces('text/plain')
  @ApiOkResponse({ schema: { type: 'string' } })
  async read(@Res() reply: FastifyReply): Promise<void> {
    const [reading, own] = await Promise.all([this.sampler.read(), this.instance()]);
    showStreams(reading.ok ? reading.value : undefined);
    reply.header('content-type', register.contentType).send(own + (await streamMetrics()));
  }

  /** One process alone would pass for counters that began anew: a scrape without answer is the truth. */
  private async instance(): Promise<string> {
    try {
      return await instanceMetrics();
    } catch (error) {
      if (!(error instanceof FleetSilentError)) throw error;
      this.logger.warn(error.message);
      throw new ProblemException('UNAVAILABLE', {}, { cause: error });
    }
  }
}
