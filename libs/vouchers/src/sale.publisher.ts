import { Injectable, Logger } from '@nestjs/common';
import { RedisUnavailableError } from '#redis';
import { EpochRegister, SaleDirectory, SaleRegister, type RestockOutcome, type SaleTerms } from '#sale-register';
import type { SaleRecord } from './voucher.types.js';

/** Whether the register sells the voucher now. POSTPONED: it is stored, and the rebuild that was asked for puts it on sale. */
export type Publication = 'ON_SALE' | 'POSTPONED';

/** Tells the register what the record says of a sale. Nothing here overwrites a running sale. */
@Injectable()
export class SalePublisher {
  private readonly logger = new Logger(SalePublisher.name);

  constructor(
    private readonly register: SaleRegister,
    private readonly directory: SaleDirectory,
    private readonly epochs: EpochRegister,
  ) {}

  /** Puts a stored sale on sale; a sale that is there already is left as it is. Never throws for Redis trouble. */
  async publish(sale: SaleRecord): Promise<Publication> {
    const { partition, voucherId } = sale;
    try {
      // First where it is, then that it is: who finds the sale can name its partition.
      await this.directory.record(voucherId, partition);
      const { kind } = await this.register.publish(partition, sale);
      switch (kind) {
        case 'PUBLISHED':
        case 'EXISTS':
          return 'ON_SALE';
        case 'CLOSED':
        case 'NEEDS_REBUILD':
          return this.postpone(sale, kind);
      }
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      return this.postpone(sale, error.message);
    }
  }

  /** Asks for the rebuild of a stored sale if the register does not have it. Never throws for Redis trouble: the periodic pass finds it then. */
  async askForMissing(sale: Pick<SaleRecord, 'partition' | 'voucherId'>): Promise<void> {
    try {
      const reading = await this.register.readSale(sale.partition, sale.voucherId);
      if (reading.kind !== 'FOUND') this.requestRebuild(sale);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
    }
  }

  /** Applies units and version of the record to the register: relative in effect, once per version. Throws RedisUnavailableError. */
  restock(partition: number, terms: SaleTerms): Promise<RestockOutcome> {
    return this.register.restock(partition, terms);
  }

  /** Asks for the rebuild of a sale that the register lacks or cannot serve. */
  requestRebuild({ partition, voucherId }: Pick<SaleRecord, 'partition' | 'voucherId'>): void {
    this.epochs.requestRebuild(partition, voucherId, 'NOT_PUBLISHED');
  }

  private postpone(sale: SaleRecord, why: string): Publication {
    this.logger.warn(`voucher ${sale.voucherId} is stored and will be put on sale by the rebuild: ${why}`);
    this.requestRebuild(sale);
    return 'POSTPONED';
  }
}
