import { describe, expect, it } from 'vitest';
import type { Settings } from '#config';
import { RedisUnavailableError } from '#redis';
import type { AdmissionOutcome, EpochRegister, RebuildReason, SaleDirectory } from '#sale-register';
import type { VoucherKnowledge, VoucherReader } from '#vouchers';
import { AdmissionBatcher } from './admission-batcher.js';
import { AdmissionService } from './admission.service.js';
import type { RefusalMemory, RememberedRefusal } from './refusal-memory.js';
import { RebuildWishes } from './rebuild-wishes.js';
import { LEASE_SIZE, RedisIdWorker } from './redis-id-worker.js';

interface Scene {
  readonly outcome?: AdmissionOutcome;
  readonly directory?: number | undefined | 'AWAY';
  readonly knowledge?: VoucherKnowledge;
  readonly leases?: 'AWAY' | 'AWAY_ONCE' | 'SILENT';
  readonly maxInFlight?: number;
  readonly refused?: RememberedRefusal;
  readonly requestTimeoutMs?: number;
}

const AWAY = new RedisUnavailableError({ sent: false, refused: true, passing: true }, new Error('away'));
const KNOWN: VoucherKnowledge = { kind: 'KNOWN', partition: 3 };

/** The service among neighbours that answer as the scene says, and write down what they were asked. */
function serviceIn(scene: Scene) {
  const asked = { admissions: 0, leases: 0, knowledge: 0, noted: [] as string[] };
  const wishes: { partition: number; voucherId: string | undefined; reason: RebuildReason }[] = [];
  const state = { outcome: scene.outcome };
  const batcher = new AdmissionBatcher({
    admit: (_partition, purchases) => {
      asked.admissions += purchases.length;
      return Promise.resolve(
        purchases.map(({ orderId }) => state.outcome ?? ({ kind: 'ACCEPTED', orderId } satisfies AdmissionOutcome)),
      );
    },
  });
  const ids = new RedisIdWorker(() => {
    asked.leases += 1;
    if (scene.leases === 'AWAY' || (scene.leases === 'AWAY_ONCE' && asked.leases === 1))
      return Promise.reject(new Error('away'));
    return scene.leases === 'SILENT' ? new Promise(() => undefined) : Promise.resolve(asked.leases * LEASE_SIZE);
  });
  const remembered = new Map<string, number>();
  const directory = {
    known: (voucherId: string) => remembered.get(voucherId),
    partitionOf: () =>
      scene.directory === 'AWAY' ? Promise.reject(AWAY) : Promise.resolve('directory' in scene ? scene.directory : 3),
    remember: (voucherId: string, partition: number) => void remembered.set(voucherId, partition),
  } as unknown as SaleDirectory;
  const vouchers = {
    knowsVoucher: () => {
      asked.knowledge += 1;
      return Promise.resolve(scene.knowledge ?? KNOWN);
    },
  } as unknown as VoucherReader;
  const epochs = {
    requestRebuild: (partition: number, voucherId: string | undefined, reason: RebuildReason) =>
      void wishes.push({ partition, voucherId, reason }),
  } as unknown as EpochRegister;
  const settings = {
    http: { requestTimeoutMs: scene.requestTimeoutMs ?? 1_500 },
    admission: { maxInFlight: scene.maxInFlight ?? 100 },
  } as Settings;
  const refusals = {
    answer: () => scene.refused,
    note: (_partition: number, voucherId: string) => void asked.noted.push(voucherId),
  } as unknown as RefusalMemory;
  const service = new AdmissionService(
    batcher,
    ids,
    directory,
    vouchers,
    new RebuildWishes(epochs),
    refusals,
    settings,
  );
  return { service, asked, wishes, state };
}

describe('AdmissionService', () => {
  it('answers a remembered refusal without asking anybody', async () => {
    const { service, asked } = serviceIn({ refused: { kind: 'SOLD_OUT' } });
    expect(await service.admit('7', '42')).toEqual({ kind: 'SOLD_OUT' });
    expect(asked).toEqual({ admissions: 0, leases: 0, knowledge: 0, noted: [] });
  });

  it.each<[AdmissionOutcome, string[]]>([
    [{ kind: 'SOLD_OUT' }, ['7']],
    [{ kind: 'ENDED', endMs: 7 }, ['7']],
    [{ kind: 'NOT_STARTED', beginMs: 5 }, ['7']],
    [{ kind: 'DUPLICATE', orderId: '9' }, []],
    [{ kind: 'UNAVAILABLE', reason: 'EPOCH' }, []],
  ])('after %o the sale may be remembered: %j', async (outcome, noted) => {
    const { service, asked } = serviceIn({ outcome });
    await service.admit('7', '42');
    expect(asked.noted).toEqual(noted);
  });

  it.each<AdmissionOutcome>([
    { kind: 'NOT_STARTED', beginMs: 5 },
    { kind: 'DUPLICATE', orderId: '9' },
    { kind: 'ENDED', endMs: 7 },
    { kind: 'SOLD_OUT' },
    { kind: 'OVERLOADED' },
    { kind: 'OUTCOME_UNKNOWN', candidateOrderId: '11' },
    { kind: 'UNAVAILABLE', reason: 'SERVER_STATE' },
    { kind: 'UNAVAILABLE', reason: 'REFUSED_WRITE' },
  ])('hands $kind on as it is, and wishes for nothing', async (outcome) => {
    const { service, wishes, asked } = serviceIn({ outcome });
    expect(await service.admit('7', '42')).toEqual(outcome);
    expect(wishes).toEqual([]);
    expect(asked.knowledge).toBe(0);
  });

  it.each<[string, Scene, string, object[]]>([
    [
      'known to the record',
      { knowledge: KNOWN },
      'UNAVAILABLE',
      [{ partition: 3, voucherId: '7', reason: 'NOT_PUBLISHED' }],
    ],
    ['unknown to the record', { knowledge: { kind: 'UNKNOWN' } }, 'VOUCHER_NOT_FOUND', []],
    [
      'while the database is away',
      { knowledge: { kind: 'UNDECIDED' } },
      'UNAVAILABLE',
      [{ partition: 3, voucherId: '7', reason: 'NOT_PUBLISHED' }],
    ],
  ])('never answers NOT_PUBLISHED: a voucher %s', async (_, scene, kind, wished) => {
    const { service, wishes } = serviceIn({ ...scene, outcome: { kind: 'NOT_PUBLISHED' } });
    expect((await service.admit('7', '42')).kind).toBe(kind);
    expect(wishes).toEqual(wished);
  });

  it.each<[string, Scene, string, number]>([
    ['known to the record is asked of the register', { directory: undefined, knowledge: KNOWN }, 'ACCEPTED', 1],
    [
      'unknown to the record is not found',
      { directory: undefined, knowledge: { kind: 'UNKNOWN' } },
      'VOUCHER_NOT_FOUND',
      0,
    ],
    [
      'nobody can speak for is unavailable',
      { directory: undefined, knowledge: { kind: 'UNDECIDED' } },
      'UNAVAILABLE',
      0,
    ],
    ['is in the record, while the node that knows where is away', { directory: 'AWAY' }, 'ACCEPTED', 1],
    ['cannot be looked up anywhere', { directory: 'AWAY', knowledge: { kind: 'UNDECIDED' } }, 'UNAVAILABLE', 0],
  ])('a voucher without partition that %s', async (_, scene, kind, admissions) => {
    const { service, asked } = serviceIn(scene);
    expect((await service.admit('7', '42')).kind).toBe(kind);
    expect(asked.admissions).toBe(admissions);
  });

  it('drops the leased numbers once for each closing of the epoch, and asks to be looked at', async () => {
    const { service, asked, wishes, state } = serviceIn({ outcome: { kind: 'UNAVAILABLE', reason: 'EPOCH' } });
    for (let turn = 0; turn < 5; turn += 1) await service.admit('7', String(100 + turn));
    // One for the first purchase, one after the leases were dropped; the next closed answers drop nothing more.
    expect(asked.leases).toBe(2);
    expect(wishes).toEqual([{ partition: 3, voucherId: undefined, reason: 'EPOCH' }]);
    state.outcome = undefined;
    expect((await service.admit('7', '200')).kind).toBe('ACCEPTED');
    state.outcome = { kind: 'UNAVAILABLE', reason: 'EPOCH' };
    await service.admit('7', '201');
    await service.admit('7', '202');
    expect(asked.leases).toBe(3);
  });

  it('wishes for the rebuild of a voucher whose numbers contradict each other', async () => {
    const { service, wishes } = serviceIn({ outcome: { kind: 'UNAVAILABLE', reason: 'INCONSISTENT' } });
    await service.admit('7', '42');
    expect(wishes).toEqual([{ partition: 3, voucherId: '7', reason: 'INCONSISTENT' }]);
  });

  it.each(['AWAY', 'SILENT'] as const)(
    'is unavailable without effect, in time, where no number can be leased: %s',
    async (leases) => {
      const { service, asked } = serviceIn({ leases, requestTimeoutMs: 100 });
      expect(await service.admit('7', '42')).toEqual({ kind: 'UNAVAILABLE', reason: 'NO_ORDER_ID' });
      expect(asked.admissions).toBe(0);
    },
  );

  it('waits for the counter while its node fails over: a lease that is refused is asked for again', async () => {
    const { service, asked } = serviceIn({ leases: 'AWAY_ONCE' });
    expect((await service.admit('7', '42')).kind).toBe('ACCEPTED');
    expect(asked).toMatchObject({ admissions: 1, leases: 2 });
  });

  it('is overloaded above its limit, and takes purchases again when the ones in hand are answered', async () => {
    const { service, asked } = serviceIn({ maxInFlight: 2 });
    const kinds = (await Promise.all(['1', '2', '3'].map((user) => service.admit('7', user)))).map(({ kind }) => kind);
    expect(kinds).toEqual(['ACCEPTED', 'ACCEPTED', 'OVERLOADED']);
    expect(asked.admissions).toBe(2);
    expect((await service.admit('7', '4')).kind).toBe('ACCEPTED');
  });
});
