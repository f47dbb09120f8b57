import { setImmediate as nextTick } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { AdmissionOutcome, AdmissionRequest } from '#sale-register';
import { AdmissionBatcher, MAX_BATCH_SIZE, type AdmissionRegister } from './admission-batcher.js';

interface Call {
  readonly partition: number;
  readonly purchases: readonly AdmissionRequest[];
  readonly timeLeftMs: number;
  answer(outcomes: readonly AdmissionOutcome[]): void;
  fail(error: Error): void;
}

/** A register driven by hand: it keeps each call until the test answers it. */
class RegisterByHand implements AdmissionRegister {
  readonly calls: Call[] = [];

  admit(
    partition: number,
    purchases: readonly AdmissionRequest[],
    timeLeftMs: number,
  ): Promise<readonly AdmissionOutcome[]> {
    return new Promise((answer, fail) => this.calls.push({ partition, purchases, timeLeftMs, answer, fail }));
  }

  call(index: number): Call {
    const call = this.calls[index];
    if (call === undefined) throw new Error(`there is no call ${index}`);
    return call;
  }
}

const accept = (purchases: readonly AdmissionRequest[]): AdmissionOutcome[] =>
  purchases.map(({ orderId }) => ({ kind: 'ACCEPTED', orderId }));

function batcherByHand() {
  const register = new RegisterByHand();
  const clock = { nowMs: 0 };
  const batcher = new AdmissionBatcher(register, () => clock.nowMs);
  const submit = (orderId: string, { partition = 0, deadlineMs = 1_000 } = {}): Promise<AdmissionOutcome> =>
    batcher.submit(partition, '7', `1${orderId}`, orderId, deadlineMs);
  return { register, clock, batcher, submit };
}

describe('AdmissionBatcher', () => {
  it('lets all purchases of one tick travel in one call, in the order of arrival, each hearing its own outcome', async () => {
    const { register, submit } = batcherByHand();
    const answers = ['1', '2', '3'].map((id) => submit(id));
    await nextTick();
    expect(register.calls).toHaveLength(1);
    expect(register.call(0).purchases.map(({ orderId }) => orderId)).toEqual(['1', '2', '3']);
    register
      .call(0)
      .answer([{ kind: 'ACCEPTED', orderId: '1' }, { kind: 'SOLD_OUT' }, { kind: 'DUPLICATE', orderId: '9' }]);
    expect(await Promise.all(answers)).toEqual([
      { kind: 'ACCEPTED', orderId: '1' },
      { kind: 'SOLD_OUT' },
      { kind: 'DUPLICATE', orderId: '9' },
    ]);
  });

  it('makes one call for each partition', async () => {
    const { register, submit } = batcherByHand();
    void submit('1', { partition: 0 });
    void submit('2', { partition: 3 });
    void submit('3', { partition: 0 });
    await nextTick();
    expect(register.calls.map(({ partition, purchases }) => [partition, purchases.length])).toEqual([
      [0, 2],
      [3, 1],
    ]);
  });

  it('bounds the size of a batch, and has one call under way; the rest waits its turn and joins one batch', async () => {
    const { register, submit } = batcherByHand();
    const total = MAX_BATCH_SIZE + 5;
    const answers = Array.from({ length: total }, (_, index) => submit(String(index + 1)));
    await nextTick();
    expect(register.calls.map(({ purchases }) => purchases.length)).toEqual([MAX_BATCH_SIZE]);
    answers.push(submit(String(total + 1)));
    await nextTick();
    expect(register.calls).toHaveLength(1);
    register.call(0).answer(accept(register.call(0).purchases));
    await expect.poll(() => register.calls.length).toBe(2);
    expect(register.call(1).purchases).toHaveLength(6);
    register.call(1).answer(accept(register.call(1).purchases));
    const outcomes = await Promise.all(answers);
    expect(outcomes.map((outcome) => outcome.kind === 'ACCEPTED' && outcome.orderId)).toEqual(
      Array.from({ length: total + 1 }, (_, index) => String(index + 1)),
    );
  });

  it('sends the first purchase at once, and those of the next millisecond together', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      const { register, submit } = batcherByHand();
      void submit('1');
      await nextTick();
      expect(register.calls).toHaveLength(1);
      register.call(0).answer(accept(register.call(0).purchases));
      for (const id of ['2', '3', '4']) {
        void submit(id);
        await nextTick();
      }
      expect(register.calls).toHaveLength(1);
      vi.advanceTimersByTime(1);
      expect(register.calls).toHaveLength(2);
      expect(register.call(1).purchases.map(({ orderId }) => orderId)).toEqual(['2', '3', '4']);
    } finally {
      vi.useRealTimers();
    }
  });

  it('drops a purchase whose deadline passed before its batch was sent: UNAVAILABLE, and the register never sees it', async () => {
    const { register, clock, submit } = batcherByHand();
    const late = submit('1', { deadlineMs: 10 });
    const inTime = submit('2', { deadlineMs: 500 });
    clock.nowMs = 10;
    await nextTick();
    expect(await late).toEqual({ kind: 'UNAVAILABLE', reason: 'NOT_SENT' });
    expect(register.call(0).purchases.map(({ orderId }) => orderId)).toEqual(['2']);
    expect(register.call(0).timeLeftMs).toBe(490);
    register.call(0).answer(accept(register.call(0).purchases));
    expect(await inTime).toEqual({ kind: 'ACCEPTED', orderId: '2' });
  });

  it('sends what stands behind a whole batch of late purchases', async () => {
    const { register, clock, submit } = batcherByHand();
    const late = Array.from({ length: MAX_BATCH_SIZE }, (_, at) => submit(String(at + 1), { deadlineMs: 10 }));
    const inTime = submit('5000', { deadlineMs: 500 });
    clock.nowMs = 10;
    await nextTick();
    expect((await Promise.all(late)).every(({ kind }) => kind === 'UNAVAILABLE')).toBe(true);
    expect(register.call(0).purchases.map(({ orderId }) => orderId)).toEqual(['5000']);
    register.call(0).answer(accept(register.call(0).purchases));
    expect(await inTime).toEqual({ kind: 'ACCEPTED', orderId: '5000' });
  });

  it('answers a waiting purchase at its deadline while the register is stuck, and never sends it', async () => {
    const { register, clock, batcher, submit } = batcherByHand();
    void submit('1');
    await nextTick();
    const waiting = submit('99', { deadlineMs: 100 });
    await nextTick();
    clock.nowMs = 100;
    batcher.sweep();
    expect(await waiting).toEqual({ kind: 'UNAVAILABLE', reason: 'NOT_SENT' });
    register.call(0).answer(accept(register.call(0).purchases));
    await nextTick();
    await nextTick();
    expect(register.calls.flatMap(({ purchases }) => purchases).map(({ orderId }) => orderId)).not.toContain('99');
  });

  it('says OUTCOME_UNKNOWN with the own id where a sent purchase is not answered by its deadline; a later reply changes nothing', async () => {
    const { register, clock, batcher, submit } = batcherByHand();
    const early = submit('1', { deadlineMs: 100 });
    const patient = submit('2', { deadlineMs: 200 });
    await nextTick();
    clock.nowMs = 100;
    batcher.sweep();
    expect(await early).toEqual({ kind: 'OUTCOME_UNKNOWN', candidateOrderId: '1' });
    register.call(0).answer([{ kind: 'SOLD_OUT' }, { kind: 'SOLD_OUT' }]);
    expect(await patient).toEqual({ kind: 'SOLD_OUT' });
    expect(await early).toEqual({ kind: 'OUTCOME_UNKNOWN', candidateOrderId: '1' });
  });

  it.each([
    ['an error', (call: Call) => call.fail(new Error('unreadable'))],
    ['fewer outcomes than purchases', (call: Call) => call.answer([{ kind: 'SOLD_OUT' }])],
  ])('says OUTCOME_UNKNOWN to each purchase of a call that ends in %s, and goes on with the next', async (_, end) => {
    const { register, submit } = batcherByHand();
    const answers = [submit('1'), submit('2')];
    await nextTick();
    end(register.call(0));
    expect(await Promise.all(answers)).toEqual([
      { kind: 'OUTCOME_UNKNOWN', candidateOrderId: '1' },
      { kind: 'OUTCOME_UNKNOWN', candidateOrderId: '2' },
    ]);
    const next = submit('3');
    await nextTick();
    register.call(1).answer(accept(register.call(1).purchases));
    expect(await next).toEqual({ kind: 'ACCEPTED', orderId: '3' });
  });
});
