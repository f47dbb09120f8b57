import type { SaleFacts, SaleView } from './sale-view.js';

export interface ApiAccess {
  readonly urls: readonly string[];
  readonly voucherId: string;
  readonly adminToken: string;
  readonly token: (buyer: number) => string;
}

const LIMIT_MS = 10_000;

/** Looks through the API alone: what buyers and administrators can see. */
export class ApiView implements SaleView {
  readonly name = 'the API alone';
  private readonly storedBefore: Promise<number | undefined>;

  constructor(private readonly access: ApiAccess) {
    this.storedBefore = this.storedByMetrics();
  }

  async storedSoFar(): Promise<number | undefined> {
    const [before, now] = [await this.storedBefore, await this.storedByMetrics()];
    return before === undefined || now === undefined ? undefined : now - before;
  }

  async onTheWay(): Promise<number | undefined> {
    return (await this.stream())?.pending;
  }

  async facts(): Promise<SaleFacts> {
    const { urls, voucherId } = this.access;
    const voucher = await this.get<{ unitsLeft?: number }>(`${urls[0]}/v1/vouchers/${voucherId}`);
    const stream = await this.stream();
    return {
      orders: undefined,
      unitsLeft: voucher?.unitsLeft,
      marks: undefined,
      pending: stream?.pending,
      deadLetters: stream?.deadLetters,
      differences: undefined,
    };
  }

  async standing(orderId: string, buyer: number): Promise<'STORED' | 'REJECTED' | 'QUEUED' | 'UNKNOWN'> {
    const { urls, voucherId, token } = this.access;
    const order = await this.get<{ status?: string }>(
      `${urls[buyer % urls.length]}/v1/vouchers/${voucherId}/orders/${orderId}`,
      token(buyer),
    );
    if (order?.status === undefined) return 'UNKNOWN';
    return order.status === 'QUEUED' || order.status === 'REJECTED' ? order.status : 'STORED';
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** All partitions together: the API does not tell which one is the voucher's. */
  private async stream(): Promise<{ pending: number; deadLetters: number } | undefined> {
    interface Partition {
      lag: number | null;
      pending: number;
      deadLetters: number;
    }
    const { urls, adminToken } = this.access;
    const answer = await this.get<{ partitions?: Partition[] }>(`${urls[0]}/v1/admin/stream`, adminToken);
    return answer?.partitions?.reduce(
      (sum, { lag, pending, deadLetters }) => ({
        pending: sum.pending + (lag ?? 0) + pending,
        deadLetters: sum.deadLetters + deadLetters,
      }),
      { pending: 0, deadLetters: 0 },
    );
  }

  private async storedByMetrics(): Promise<number | undefined> {
    const counts = await Promise.all(
      this.access.urls.map(async (url) => {
        const text = await this.text(`${url}/metrics`);
        const lines = [...(text ?? '').matchAll(/^seckill_orders_stored_total(?:\{[^}]*\})? ([\d.e+]+)/gm)];
        return text === undefined ? undefined : lines.reduce((sum, line) => sum + Number(line[1]), 0);
      }),
    );
    return counts.reduce((sum, count) => (sum === undefined || count === undefined ? undefined : sum + count), 0);
  }

  private async get<T>(url: string, token?: string): Promise<T | undefined> {
    const text = await this.text(url, token);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  /** Undefined for every answer but 200, and for none. */
  private async text(url: string, token?: string): Promise<string | undefined> {
    try {
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(LIMIT_MS) });
      const text = await response.text();
      return response.status === 200 ? text : undefined;
    } catch {
      return undefined;
    }
  }
}
