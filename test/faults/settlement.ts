import { checkSale, countSale, type SaleCounts } from './checker.js';
import { Crowd, isOpen, tokenOf } from './crowd.js';
import type { Sale, Stage } from './stage.js';
import { until } from '../support/waiting.js';

/** Entries that may stay in the stream after all are finished: the trim removes what is below its bound. */
const LEFT_ENTRIES = 10;
const HANDLES_LIMIT = 180;
const RESIDENT_LIMIT_MB = 700;
/** I2: within this time after the healing. */
const TOLD_WITHIN_MS = 10_000;

/** The end of a scenario: doubts are resolved, what is left is bought, the streams run dry, and the invariants are checked. */
export class Settlement {
  constructor(private readonly stage: Stage) {}

  /** Asks for everybody who is in doubt or was refused for now, until each has a final answer (I7), then lets fresh users buy what is left (I5). */
  async settle(): Promise<void> {
    for (const sale of this.stage.sales) {
      const last = new Map(this.stage.history.of(sale.voucherId).map((call) => [call.userId, call]));
      const users = [...last].filter(([, call]) => isOpen(call)).map(([user]) => user);
      await this.askUntilFinal(sale, users);
    }
    await this.drained();
    for (const sale of this.stage.sales.filter(({ expected }) => expected.soldOut)) await this.buyTheRest(sale);
  }

  private async buyTheRest(sale: Sale): Promise<void> {
    for (let round = 0; round < 5; round += 1) {
      const state = await this.stage.reader.sale(sale.voucherId);
      if (state.active.length >= state.units) return;
      await this.askUntilFinal(sale, this.stage.users(state.units - state.active.length + 20));
      await this.drained();
    }
  }

  /** Each user asks until he is answered for good, or patience ends. */
  async askUntilFinal(sale: Sale, users: readonly string[]): Promise<void> {
    const crowd = new Crowd(
      {
        voucherId: sale.voucherId,
        ports: this.stage.world.apis.map(({ node }) => node.port),
        users,
        inFlight: 64,
        tries: Math.ceil(this.stage.patienceMs / 100),
        tryPauseMs: 100,
      },
      this.stage.history,
      this.stage.random.derive('settle'),
    );
    await crowd.run();
  }

  /** Resolves when the streams hold no unfinished entry and every mark is a row or a dead letter (I2, I9); what does not come true is recorded. */
  async drained(): Promise<void> {
    const startMs = performance.now();
    let state = '';
    try {
      await until(
        'all orders are stored',
        async () => (state = await this.unfinished()) === '',
        this.stage.patienceMs,
        50,
      );
    } catch {
      this.stage.broken.push(`I2/I9 not drained within ${Math.round(performance.now() - startMs)} ms: ${state}`);
    }
  }

  private async unfinished(): Promise<string> {
    const partitions = new Set<number>();
    for (const { voucherId } of this.stage.sales) {
      const sale = await this.stage.reader.sale(voucherId);
      partitions.add(sale.partition);
      const ends = sale.active.length + sale.deadLetters.length;
      if (sale.marks.size !== ends)
        return `voucher ${voucherId}: ${sale.marks.size} marks, ${sale.active.length} rows, ${sale.deadLetters.length} dead letters`;
    }
    for (const partition of partitions) {
      const { pending, undelivered, length } = await this.stage.reader.stream(partition);
      if (pending + undelivered > 0 || length > LEFT_ENTRIES)
        return `stream ${partition}: ${pending} pending, ${undelivered} undelivered, length ${length}`;
    }
    return '';
  }

  /** Holds every invariant against what both stores say now. Answers the counts of the sale under test. */
  async check(): Promise<SaleCounts> {
    for (const sale of this.stage.sales) {
      const state = await this.stage.reader.sale(sale.voucherId);
      for (const fault of checkSale(state, this.stage.history.of(sale.voucherId), sale.expected))
        this.stage.broken.push(`voucher ${sale.voucherId}: ${fault}`);
    }
    await this.checkTold();
    await this.checkFootprints();
    this.stage.broken.push(...(await this.stage.metricDifferences()));
    const calls = this.stage.history.of(this.stage.sale.voucherId);
    return countSale(await this.stage.reader.sale(this.stage.sale.voucherId), calls);
  }

  /**
   * I2: what the buyer sees, from either process, is what the record says, within 10 s. Until a process has found the database again the contract
   * lets it say QUEUED from the mark, or 503; any other answer is wrong at once.
   */
  private async checkTold(): Promise<void> {
    const { voucherId } = this.stage.sale;
    const state = await this.stage.reader.sale(voucherId);
    const ended = state.inactive.slice(0, 5);
    const stored =
      state.active.length === 0 ? [] : [this.stage.random.pick(state.active), this.stage.random.pick(state.active)];
    for (const row of [...ended, ...stored]) {
      const api = this.stage.random.between(0, this.stage.world.apis.length - 1);
      const ask = () =>
        this.stage.call('GET', `/v1/vouchers/${voucherId}/orders/${row.id}`, { token: tokenOf(row.userId), api });
      const wanted = { 1: 'UNPAID', 4: 'CANCELLED', 7: 'REJECTED' }[row.status] ?? 'another';
      let answer = await ask();
      const isDecided = () => answer.status !== 503 && answer.body['status'] !== 'QUEUED';
      // Where it stays undecided that is what the buyer sees.
      if (!isDecided())
        await until('an answer', async () => ((answer = await ask()), isDecided()), TOLD_WITHIN_MS).catch(() => 0);
      if (answer.status !== 200 || answer.body['status'] !== wanted)
        this.stage.broken.push(
          `I2 order ${row.id} is ${wanted}, its buyer sees ${answer.status} ${JSON.stringify(answer.body)}`,
        );
    }
  }

  /** I9: every process is back, and its open handles and memory stay within their limits. One that is still starting has its modules' files open. */
  private async checkFootprints(): Promise<void> {
    for (const { node } of this.stage.world.nodes) {
      await node.ready('/health/live', this.stage.patienceMs).catch((error: Error) => {
        this.stage.broken.push(`I9 ${node.name} is not back: ${error.message}`);
      });
      const seen = node.footprint();
      if (seen === undefined) continue;
      this.stage.expect(seen.residentMb <= RESIDENT_LIMIT_MB, `I9 ${node.name} holds ${seen.residentMb} MB`);
      this.stage.expect(seen.handles <= HANDLES_LIMIT, `I9 ${node.name} holds ${seen.handles} handles`);
    }
  }
}
