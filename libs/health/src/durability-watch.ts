import { Injectable, Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { DurabilityProbe, RedisConnections, RedisUnavailableError } from '#redis';
import { EpochRegister } from '#sale-register';

/** The level may be changed at any time by an operator: it is read again this often. */
export const DURABILITY_INTERVAL_MS = 10_000;

/**
 * Keeps what is known of Redis' durability true, whether anybody asks or not: read whenever the connection is there (again), every ten seconds, and at
 * each closing of an epoch (then another server may answer). The probe reports each change in the log and in a metric.
 */
@Injectable()
export class DurabilityWatch implements OnModuleInit, OnModuleDestroy {
  private readonly logger = new Logger(DurabilityWatch.name);
  private readonly read = (): void => void this.look();
  private timer: NodeJS.Timeout | undefined;
  private unsubscribe: (() => void) | undefined;
  private looking = false;

  constructor(
    private readonly probe: DurabilityProbe,
    private readonly connections: RedisConnections,
    private readonly epochs: EpochRegister,
  ) {}

  onModuleInit(): void {
    this.connections.command.on('ready', this.read);
    this.timer = setInterval(this.read, DURABILITY_INTERVAL_MS).unref();
    this.unsubscribe = this.epochs.onRebuildRequested(({ reason }) => {
      if (reason === 'EPOCH') this.read();
    });
    this.read();
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
    this.unsubscribe?.();
    this.connections.command.off('ready', this.read);
  }

  /** One look at a time; a server that does not answer says nothing about its level. */
  private async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    try {
      await this.probe.read();
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) this.logger.error('the durability of Redis cannot be read', error);
    } finally {
      this.looking = false;
    }
  }
}
