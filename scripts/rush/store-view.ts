import { NestFactory } from '@nestjs/core';
import { ConfigModule, type Settings } from '#config';
import { Database } from '#database';
import { explainFinding, ReconciliationModule, ReconciliationService } from '#reconciliation';
import { RedisConnections } from '#redis';
import { OrderLog, SaleRegister } from '#sale-register';
import type { RecordedOrder, SaleFacts, SaleView } from './sale-view.js';

const CONNECT_LIMIT_MS = 10_000;
const PAGE = 20_000;
const REJECTED = 7;

class RushAuditModule {}

/** Looks into PostgreSQL and Redis themselves, and lets the audit's rules judge them. */
export class StoreView implements SaleView {
  readonly name = 'PostgreSQL and Redis';

  private constructor(
    private readonly close_: () => Promise<void>,
    private readonly database: Database,
    private readonly register: SaleRegister,
    private readonly log: OrderLog,
    private readonly reconciliation: ReconciliationService,
    private readonly voucherId: string,
    private readonly partition: number,
  ) {}

  /**
   * Connects to the stores of the settings. Undefined where they do not know the voucher: then they are not those of the service.
   * @throws where they cannot be reached
   */
  static async open(settings: Settings, voucherId: string): Promise<StoreView | undefined> {
    const context = await NestFactory.createApplicationContext(
      { module: RushAuditModule, imports: [ConfigModule.forRoot(settings), ReconciliationModule] },
      { logger: false, abortOnError: false },
    );
    try {
      const database = context.get(Database, { strict: false });
      await database.whenReady(CONNECT_LIMIT_MS);
      if (!(await context.get(RedisConnections, { strict: false }).whenReady(CONNECT_LIMIT_MS)))
        throw new Error('Redis cannot be reached');
      const rows = await database.query<{ partition_id: number }>(
        'SELECT partition_id FROM tb_seckill_voucher WHERE voucher_id = $1',
        [voucherId],
      );
      if (rows[0] === undefined) {
        await context.close();
        return undefined;
      }
      return new StoreView(
        () => context.close(),
        database,
        context.get(SaleRegister, { strict: false }),
        context.get(OrderLog, { strict: false }),
        context.get(ReconciliationService, { strict: false }),
        voucherId,
        Number(rows[0].partition_id),
      );
    } catch (error) {
      await context.close();
      throw error;
    }
  }

  async storedSoFar(): Promise<number> {
    const rows = await this.database.query<{ count: string }>(
      `SELECT count(*) AS count FROM tb_voucher_order WHERE voucher_id = $1 AND status <> ${REJECTED}`,
      [this.voucherId],
    );
    return Number(rows[0]?.count ?? 0);
  }

  async onTheWay(): Promise<number | undefined> {
    const { lag, pending } = await this.log.stats(this.partition);
    return lag === undefined ? undefined : lag + pending;
  }

  async facts(): Promise<SaleFacts> {
    const orders = await this.allOrders();
    const reading = await this.register.readSale(this.partition, this.voucherId);
    const sale = reading.kind === 'FOUND' ? reading.sale : undefined;
    const { lag, pending, deadLetters } = await this.log.stats(this.partition);
    const { findings } = await this.reconciliation.inspect({ voucherIds: [this.voucherId] });
    return {
      orders,
      unitsLeft: sale?.unitsLeft ?? NaN,
      marks: sale?.marks ?? NaN,
      pending: lag === undefined ? undefined : lag + pending,
      deadLetters,
      differences: findings.map((finding) => `${finding.kind}: ${explainFinding(finding).meaning}`),
    };
  }

  async standing(orderId: string): Promise<'STORED' | 'REJECTED' | 'UNKNOWN'> {
    const rows = await this.database.query<{ status: number }>(
      `SELECT status FROM tb_voucher_order WHERE id = $1 UNION ALL SELECT ${REJECTED} FROM tb_order_rejection WHERE order_id = $1`,
      [orderId],
    );
    if (rows[0] === undefined) return 'UNKNOWN';
    return Number(rows[0].status) === REJECTED ? 'REJECTED' : 'STORED';
  }

  close(): Promise<void> {
    return this.close_();
  }

  private async allOrders(): Promise<RecordedOrder[]> {
    const orders: RecordedOrder[] = [];
    for (let after = '0'; ;) {
      const rows = await this.database.query<{ id: string; user_id: string; status: number }>(
        `SELECT id, user_id, status FROM (
           SELECT id, user_id, status FROM tb_voucher_order WHERE voucher_id = $1 AND id > $2
           UNION ALL SELECT order_id, user_id, ${REJECTED} FROM tb_order_rejection WHERE voucher_id = $1 AND order_id > $2
         ) AS known ORDER BY id LIMIT ${PAGE}`,
        [this.voucherId, after],
      );
      for (const { id, user_id, status } of rows)
        orders.push({ orderId: String(id), userId: String(user_id), rejected: Number(status) === REJECTED });
      const last = rows[rows.length - 1];
      if (rows.length < PAGE || last === undefined) return orders;
      after = String(last.id);
    }
  }
}
