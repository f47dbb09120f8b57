import { EventEmitter } from 'node:events';
import { afterEach, expect, it, vi } from 'vitest';
import type { RedisConnections } from '#redis';
import type { CheckedSale, SaleChecks, SaleRegister } from '#sale-register';
import { BuyerFilter } from './buyer-filter.js';
import { RefusalMemory } from './refusal-memory.js';

/** A subscription that is confirmed when the test says so. */
class Ear extends EventEmitter {
  readonly status = 'ready';
  readonly confirm: (() => void)[] = [];
  readonly subscribe = vi.fn(() => new Promise<void>((resolve) => this.confirm.push(resolve)));
  readonly unsubscribe = vi.fn((_channel: string) => Promise.resolve());
}

const SALE: CheckedSale = { beginMs: 0, endMs: 9_000_000_000_000, unitsLeft: 0, marks: 1, version: 1 };
const memories: RefusalMemory[] = [];
afterEach(() => memories.splice(0).forEach((memory) => memory.onModuleDestroy()));

function remembering(sale: CheckedSale = SALE, buyers: readonly string[] = ['7']) {
  const ear = new Ear();
  const connections = { isReady: vi.fn(() => true), openSubscriber: () => ear, close: () => undefined };
  const check = vi.fn((_partition: number, ids: readonly string[]) =>
    Promise.resolve({ kind: 'OPEN', history: 'a', serverMs: Date.now(), sales: ids.map(() => sale) }),
  );
  const checks = { check, channelOf: (_partition: number, voucherId: string) => `sale:${voucherId}` };
  const scanMarks = vi.fn(async function* () {
    await Promise.resolve();
    yield buyers.map((userId) => ({ userId, orderId: '1' }));
  });
  const memory = new RefusalMemory(
    connections as unknown as RedisConnections,
    checks as unknown as SaleChecks,
    { scanMarks } as unknown as SaleRegister,
  );
  memories.push(memory);
  return { memory, ear, scanMarks, connections };
}

it('answers nothing before it hears of changes, however often it looks', async () => {
  const { memory, ear } = remembering();
  memory.note(0, '17');
  await memory.checkAll();
  await new Promise(setImmediate);
  expect(memory.answer('17', '8')).toBeUndefined();
  ear.confirm.forEach((confirm) => confirm());
  await vi.waitFor(() => expect(memory.answer('17', '8')).toEqual({ kind: 'SOLD_OUT' }));
  expect(memory.answer('17', '7')).toBeUndefined();
});

it('gives up a channel of a sale that it does not remember', async () => {
  const { memory, ear } = remembering();
  memory.note(0, '17');
  ear.confirm.forEach((confirm) => confirm());
  await vi.waitFor(() => expect(memory.answer('17', '8')).toEqual({ kind: 'SOLD_OUT' }));
  ear.emit('close');
  expect(memory.answer('17', '8')).toBeUndefined();
  ear.unsubscribe.mockClear();
  ear.emit('message', 'sale:17', '');
  expect(ear.unsubscribe).toHaveBeenCalledExactlyOnceWith('sale:17');
});

it('keeps its filters within their bytes also while many sales are read at once', async () => {
  const marks = 4_000_000;
  const { memory, ear, scanMarks } = remembering({ ...SALE, marks });
  const most = Math.floor((64 * 1024 * 1024) / BuyerFilter.bytesFor(marks));
  for (let voucher = 1; voucher <= 3 * most; voucher += 1) memory.note(0, String(voucher));
  ear.confirm.forEach((confirm) => confirm());
  await vi.waitFor(() => expect(scanMarks).toHaveBeenCalled());
  await new Promise(setImmediate);
  expect(scanMarks.mock.calls.length).toBeLessThanOrEqual(most);
});

it('subscribes to nothing before its connection is ready, and does at a later refusal', async () => {
  const { memory, ear, connections } = remembering();
  connections.isReady.mockReturnValue(false);
  memory.note(0, '17');
  expect(ear.subscribe).not.toHaveBeenCalled();
  connections.isReady.mockReturnValue(true);
  memory.note(0, '17');
  ear.confirm.forEach((confirm) => confirm());
  await vi.waitFor(() => expect(memory.answer('17', '8')).toEqual({ kind: 'SOLD_OUT' }));
});
