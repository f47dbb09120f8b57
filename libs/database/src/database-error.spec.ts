import { describe, expect, it } from 'vitest';
import {
  classifyDatabaseError,
  DatabaseUnavailableError,
  doubtsConnection,
  sqlStateOf,
  toUnavailable,
  TransactionRolledBackError,
  type DatabaseErrorKind,
} from './database-error.js';

const answered = (code: string): Error => Object.assign(new Error(`answered ${code}`), { code, severity: 'ERROR' });

describe('classifyDatabaseError', () => {
  const cases: [DatabaseErrorKind, string[]][] = [
    ['PASSING', ['08006', '08003', '57P01', '57P02', '57P03', '57014', '53100', '53200', '53300', '40001', '40P01']],
    [
      'PASSING',
      ['25P02', '25P03', '25006', '55006', '58030', 'XX000', '0A000', '26000', '28P01', '3D000', '42501', '42P01'],
    ],
    ['LOCK_TIMEOUT', ['55P03']],
    ['FINAL', ['22003', '22P02', '23502', '23503', '23505', '23514', '21000', '44000', '54000', 'P0001']],
  ];
  for (const [kind, codes] of cases) {
    it.each(codes)(`calls SQLSTATE %s ${kind}`, (code) => {
      expect(classifyDatabaseError(answered(code))).toBe(kind);
    });
  }

  it('takes a code that PostgreSQL does not know for one that a trigger raised: FINAL', () => {
    expect(classifyDatabaseError(answered('ZZ999'))).toBe('FINAL');
    expect(classifyDatabaseError(answered('45000'))).toBe('FINAL');
  });

  it.each(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOTFOUND', 'ETIMEDOUT'])(
    'calls a lost connection (%s) PASSING',
    (code) => {
      expect(classifyDatabaseError(Object.assign(new Error('socket'), { code }))).toBe('PASSING');
    },
  );

  it.each([undefined, null, 'text', new TypeError('a defect of ours'), new TransactionRolledBackError()])(
    'never condemns an order for what has no SQLSTATE: %s',
    (error) => {
      expect(classifyDatabaseError(error)).toBe('PASSING');
    },
  );

  it('does not take a five-letter code of the operating system for a SQLSTATE', () => {
    expect(sqlStateOf(Object.assign(new Error('pipe'), { code: 'EPIPE' }))).toBeUndefined();
  });

  it("looks into TypeORM's wrapping", () => {
    expect(classifyDatabaseError(Object.assign(new Error('failed'), { driverError: answered('23505') }))).toBe('FINAL');
    expect(classifyDatabaseError(Object.assign(new Error('failed'), { driverError: answered('55P03') }))).toBe(
      'LOCK_TIMEOUT',
    );
  });

  it('keeps kind, code and cause when a passing error becomes DatabaseUnavailableError, and final errors as they are', () => {
    const deadlock = answered('40P01');
    const wrapped = toUnavailable(deadlock);
    expect(wrapped).toBeInstanceOf(DatabaseUnavailableError);
    expect(wrapped).toMatchObject({
      code: 'DATABASE_UNAVAILABLE',
      kind: 'PASSING',
      sqlState: '40P01',
      cause: deadlock,
    });
    expect(toUnavailable(wrapped)).toBe(wrapped);
    expect(classifyDatabaseError(toUnavailable(answered('55P03')))).toBe('LOCK_TIMEOUT');
    const refused = answered('23514');
    expect(toUnavailable(refused)).toBe(refused);
  });

  it('doubts the connection after silence, connection exceptions and shutdowns, not after a deadlock', () => {
    expect([new Error('silence'), answered('08006'), answered('57P01')].map(doubtsConnection)).toEqual([
      true,
      true,
      true,
    ]);
    expect([answered('40P01'), answered('57014'), answered('53300')].map(doubtsConnection)).toEqual([
      false,
      false,
      false,
    ]);
  });
});
