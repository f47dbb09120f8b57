import { Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { VoucherRepository } from './voucher.repository.js';
import type { VoucherKnowledge } from './voucher.types.js';

const REMEMBER_MS = 1_000;
const REMEMBERED_IDS = 10_000;
const IDS_PER_QUERY = 1_000;
const WAITING_IDS = 10_000;
const REPORT_INTERVAL_MS = 5_000;

const UNDECIDED: VoucherKnowledge = { kind: 'UNDECIDED' };

interface Question {
  readonly answer: Promise<VoucherKnowledge>;
  readonly give: (knowledge: VoucherKnowledge) => void;
}

/**
 * Tells an unknown voucher (404) from one that the register merely lacks (503). Bounded: one query at a time asks for all ids that came
 * meanwhile, and what the database said is remembered for a second. So a flood of unknown ids costs one connection.
 */
@Injectable()
export class KnownVouchers {
  private readonly logger = new Logger(KnownVouchers.name);
  private readonly remembered = new LRUCache<string, VoucherKnowledge>({ max: REMEMBERED_IDS, ttl: REMEMBER_MS });
  private readonly waiting = new Map<string, Question>();
  private asking = false;
  private reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly vouchers: VoucherRepository) {}

  /** What the record says of the voucher; UNDECIDED where the database is away, or does not answer within `timeoutMs`. Never rejects. */
  async look(voucherId: string, timeoutMs: number): Promise<VoucherKnowledge> {
    const remembered = this.remembered.get(voucherId);
    if (remembered !== undefined) return remembered;
    const question = this.question(voucherId);
    if (question === undefined || timeoutMs <= 0) return UNDECIDED;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<VoucherKnowledge>((give) => {
      timer = setTimeout(() => give(UNDECIDED), timeoutMs);
    });
    try {
      return await Promise.race([question.answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Forgets what was said of the voucher: it was made just now. */
  forget(voucherId: string): void {
    this.remembered.delete(voucherId);
  }

  private question(voucherId: string): Question | undefined {
    const present = this.waiting.get(voucherId);
    if (present !== undefined) return present;
    if (this.waiting.size >= WAITING_IDS) return undefined;
    let give: Question['give'] = () => undefined;
    const answer = new Promise<VoucherKnowledge>((resolve) => (give = resolve));
    const question = { answer, give };
    this.waiting.set(voucherId, question);
    if (!this.asking) {
      this.asking = true;
      setImmediate(() => void this.askAll());
    }
    return question;
  }

  private async askAll(): Promise<void> {
    while (this.waiting.size > 0) await this.ask([...this.waiting.keys()].slice(0, IDS_PER_QUERY));
    this.asking = false;
  }

  private async ask(voucherIds: readonly string[]): Promise<void> {
    // Taken out first: who asks from here on is answered by a query that starts after him.
    const questions = voucherIds.map((voucherId) => {
      const question = this.waiting.get(voucherId);
      this.waiting.delete(voucherId);
      return { voucherId, give: question?.give };
    });
    const partitions = await this.partitionsOf(voucherIds);
    for (const { voucherId, give } of questions) {
      const partition = partitions?.get(voucherId);
      const knowledge: VoucherKnowledge =
        partitions === undefined
          ? UNDECIDED
          : partition === undefined
            ? { kind: 'UNKNOWN' }
            : { kind: 'KNOWN', partition };
      if (knowledge.kind !== 'UNDECIDED') this.remembered.set(voucherId, knowledge);
      give?.(knowledge);
    }
  }

  private async partitionsOf(voucherIds: readonly string[]): Promise<Map<string, number> | undefined> {
    try {
      return await this.vouchers.partitionsOf(voucherIds);
    } catch (error) {
      const nowMs = performance.now();
      if (nowMs - this.reportedAtMs >= REPORT_INTERVAL_MS) {
        this.reportedAtMs = nowMs;
        this.logger.warn(`vouchers cannot be looked up: ${error instanceof Error ? error.message : String(error)}`);
      }
      return undefined;
    }
  }
}
