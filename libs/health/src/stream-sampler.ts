import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { OrderLog, type StreamStats } from '#sale-register';
import { StreamConsumer } from '#stream-consumer';
import { type Reading, SharedProbe } from './shared-probe.js';

const LIMIT_MS = 1000;

/** The order streams of every partition that this process knows, as they are now; one look serves all who ask at the same time. */
@Injectable()
export class StreamSampler {
  private readonly probe: SharedProbe<readonly StreamStats[]>;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly log: OrderLog,
    private readonly consumer: StreamConsumer,
  ) {
    this.probe = new SharedProbe(() => this.ask(), LIMIT_MS);
  }

  /** Partitions of the settings, and further ones that the consumer found in the database; ascending. */
  partitions(): number[] {
    const configured = Array.from({ length: this.settings.stream.partitions }, (_, partition) => partition);
    const consumed = this.consumer.status().consumers.map(({ partition }) => partition);
    return [...new Set([...configured, ...consumed])].sort((a, b) => a - b);
  }

  /** Never rejects; Redis that is away, or slower than a second, is a reading without value. */
  read(): Promise<Reading<readonly StreamStats[]>> {
    return this.probe.read();
  }

  private ask(): Promise<readonly StreamStats[]> {
    return Promise.all(this.partitions().map((partition) => this.log.stats(partition)));
  }
}
