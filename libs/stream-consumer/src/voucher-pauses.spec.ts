import { expect, it } from 'vitest';
import { VoucherPauses } from './voucher-pauses.js';

it('pauses a locked voucher for growing times and no other one', () => {
  const pauses = new VoucherPauses(() => 0);
  pauses.defer('1', 1_000);
  expect(pauses.isPaused('1', 1_099)).toBe(true);
  expect(pauses.isPaused('1', 1_100)).toBe(false);
  expect(pauses.isPaused('2', 1_000)).toBe(false);
  pauses.defer('1', 1_100);
  expect(pauses.isPaused('1', 1_299)).toBe(true);
  pauses.succeed('1');
  expect(pauses.isPaused('1', 1_200)).toBe(false);
  expect(pauses.size).toBe(0);
});

it('knows when the first pause ends and whether all vouchers wait', () => {
  const pauses = new VoucherPauses(() => 0);
  expect(pauses.allPaused(0)).toBe(false);
  expect(pauses.nextEndMs()).toBeUndefined();
  pauses.defer('1', 0);
  pauses.defer('2', 50);
  expect(pauses.allPaused(60)).toBe(true);
  expect(pauses.nextEndMs()).toBe(100);
  expect(pauses.allPaused(100)).toBe(false);
});

it('stays bounded with any number of locked vouchers', () => {
  const pauses = new VoucherPauses(() => 0);
  for (let voucher = 0; voucher < 12_000; voucher += 1) pauses.defer(String(voucher), 0);
  expect(pauses.size).toBe(10_000);
});
