import { Inject, Injectable, Logger } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { Database, DatabaseUnavailableError } from '#database';
import { StockLedger } from '#orders';
import { IdempotencyKeyRepository, type KeptAnswer, type NamedCall } from './idempotency-key.repository.js';
import { SalePublisher } from './sale.publisher.js';
import { VoucherReader } from './voucher.reader.js';
import { VoucherRepository } from './voucher.repository.js';
import { inUsualOrder, voucherView } from './voucher-view.js';
import type { NewVoucher, SaleRecord, VoucherView } from './voucher.types.js';

/** An answer about a voucher. `replayed`: it was given before, to a call with the same Idempotency-Key. */
export interface VoucherAnswer {
  readonly voucher: VoucherView;
  readonly replayed: boolean;
}

/** Makes vouchers. */
@Injectable()
export class VoucherService {
  private readonly logger = new Logger(VoucherService.name);

  constructor(
    private readonly database: Database,
    private readonly vouchers: VoucherRepository,
    private readonly keys: IdempotencyKeyRepository,
    private readonly ledger: StockLedger,
    private readonly reader: VoucherReader,
    private readonly publisher: SalePublisher,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /**
   * Stores the voucher, its sale, its partition and a ledger line in one transaction, then puts it on sale. While the register is closed or away
   * the voucher is stored all the same, and the rebuild puts it on sale. `actor` is who made it, for the ledger.
   * @throws DatabaseUnavailableError, and what `IdempotencyKeyRepository.once` throws.
   */
  async create(voucher: NewVoucher, actor: string, call?: NamedCall): Promise<VoucherAnswer> {
    let sale: SaleRecord | undefined;
    const answer = await this.database.transaction((manager, session) =>
      this.keys.once(session, call, async (): Promise<KeptAnswer<VoucherView>> => {
        const record = await this.vouchers.insert(session, voucher, this.settings.stream.partitions);
        const { voucherId, units } = record.sale;
        sale = record.sale;
        await this.ledger.append(manager, {
          kind: 'PUBLICATION',
          voucherId,
          before: 0,
          after: units,
          reason: 'voucher created',
          actor,
        });
        return { status: 201, body: voucherView(record) };
      }),
    );
    this.reader.forget(answer.body.voucherId);
    if (sale === undefined) await this.makeSureOfSale(answer.body.voucherId);
    else await this.publisher.publish(sale);
    return { voucher: inUsualOrder(answer.body), replayed: answer.replayed };
  }

  /**
   * A repeated call: the first one may have ended between the two stores. By now the voucher may have been sold, and the register have lost it, so full
   * units must not be published again: a sale that is missing is rebuilt from the record. Nothing that happens here makes the voucher unmade.
   */
  private async makeSureOfSale(voucherId: string): Promise<void> {
    try {
      const sale = await this.reader.findSale(voucherId);
      if (sale !== undefined) await this.publisher.askForMissing(sale);
    } catch (error) {
      if (!(error instanceof DatabaseUnavailableError)) throw error;
      this.logger.warn(`voucher ${voucherId} was not looked up again: ${error.message}`);
    }
  }
}
