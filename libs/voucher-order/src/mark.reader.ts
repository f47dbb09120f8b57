import { Injectable } from '@nestjs/common';
import { isId } from '#http';
import { RedisUnavailableError } from '#redis';
import { EpochRegister, SaleDirectory, SaleRegister } from '#sale-register';

/**
 * What the register says of a buyer and a voucher. NONE is a proof: the buyer holds no accepted order. UNDECIDED: Redis is away, the sale is closed or
 * not there, so a missing mark proves nothing; or the mark is no order id, so another hand wrote it. `partition` is where the voucher is sold, as far as it is known.
 */
export type MarkReading =
  | { readonly kind: 'HELD'; readonly orderId: string; readonly partition: number }
  | { readonly kind: 'NONE'; readonly partition: number }
  | { readonly kind: 'UNDECIDED'; readonly partition: number | undefined };

/** Reads the marks of buyers, and says what their absence is worth. */
@Injectable()
export class MarkReader {
  constructor(
    private readonly register: SaleRegister,
    private readonly directory: SaleDirectory,
    private readonly epochs: EpochRegister,
  ) {}

  /** The buyer's mark. Never throws for Redis trouble; bounded by the command timeout. */
  async read(voucherId: string, userId: string): Promise<MarkReading> {
    let partition: number | undefined;
    try {
      partition = await this.directory.partitionOf(voucherId);
      if (partition === undefined) return { kind: 'UNDECIDED', partition };
      const held = await this.register.readMark(partition, voucherId, userId);
      if (held !== undefined) return heldReading(held, partition);
      return await this.readAgain(partition, voucherId, userId);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      return { kind: 'UNDECIDED', partition };
    }
  }

  /**
   * The mark is missing. It proves something only where partition and sale are open; and the mark is read once more behind that, because it may have
   * come back between (a rebuild ended just now). The three travel together, in this order.
   */
  private async readAgain(partition: number, voucherId: string, userId: string): Promise<MarkReading> {
    const [epoch, sale, held] = await Promise.all([
      this.epochs.state(partition),
      this.register.readSale(partition, voucherId),
      this.register.readMark(partition, voucherId, userId),
    ]);
    if (held !== undefined) return heldReading(held, partition);
    const isOpen = epoch.kind === 'OPEN' && sale.kind === 'FOUND' && sale.sale.status === 'open';
    return { kind: isOpen ? 'NONE' : 'UNDECIDED', partition };
  }
}

function heldReading(held: string, partition: number): MarkReading {
  return isId(held) ? { kind: 'HELD', orderId: held, partition } : { kind: 'UNDECIDED', partition };
}
