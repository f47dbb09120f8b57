import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReadPlan, sweepEveryMs } from './read-plan.js';

const plan = () => new ReadPlan({ blockMs: 2_000, sweepEveryMs: 500 });

describe('ReadPlan', () => {
  it('reads the own pending list to its end before anything else, at the start and after a failure', () => {
    const reads = plan();
    expect(reads.next(0)).toEqual({ kind: 'OWN_PENDING', afterId: '0-0', first: true });
    reads.ownPendingRead('7-1');
    expect(reads.next(0)).toEqual({ kind: 'OWN_PENDING', afterId: '7-1', first: true });
    reads.ownPendingRead(undefined);
    expect(reads.next(0).kind).toBe('CLAIM');
    reads.restart();
    expect(reads.next(0)).toEqual({ kind: 'OWN_PENDING', afterId: '0-0', first: true });
  });

  it('lets a sweep and new traffic take turns, keeps the cursor, and rests after the sweep', () => {
    const reads = plan();
    reads.ownPendingRead(undefined);
    expect(reads.next(0)).toEqual({ kind: 'CLAIM', cursor: '0-0' });
    reads.claimed('5-5', 0);
    expect(reads.next(0)).toEqual({ kind: 'NEW', blockMs: 0 });
    expect(reads.next(0)).toEqual({ kind: 'CLAIM', cursor: '5-5' });
    reads.claimed('0-0', 10);
    expect(reads.next(10)).toEqual({ kind: 'NEW', blockMs: 500 });
    expect(reads.next(400)).toEqual({ kind: 'NEW', blockMs: 110 });
    expect(reads.next(510)).toEqual({ kind: 'CLAIM', cursor: '0-0' });
  });

  it('never waits for new entries beyond the next look at orders that were left', () => {
    const reads = plan();
    reads.ownPendingRead(undefined);
    reads.claimed('0-0', 0);
    reads.recheckOwnPending(300);
    reads.recheckOwnPending(200);
    expect(reads.next(0)).toEqual({ kind: 'NEW', blockMs: 200 });
    expect(reads.next(200)).toEqual({ kind: 'OWN_PENDING', afterId: '0-0', first: false });
    expect(reads.next(200)).toEqual({ kind: 'NEW', blockMs: 0 });
    reads.ownPendingRead(undefined);
    expect(reads.next(300)).toEqual({ kind: 'NEW', blockMs: 200 });
  });

  it('puts off another look at left orders, but never the first reading after a failure', () => {
    const reads = plan();
    reads.postponeOwnPending(400);
    expect(reads.next(0)).toEqual({ kind: 'OWN_PENDING', afterId: '0-0', first: true });
    reads.ownPendingRead(undefined);
    reads.claimed('0-0', 0);
    reads.recheckOwnPending(100);
    expect(reads.next(100)).toEqual({ kind: 'OWN_PENDING', afterId: '0-0', first: false });
    reads.ownPendingRead('9-9');
    reads.postponeOwnPending(400);
    expect(reads.next(100)).toEqual({ kind: 'NEW', blockMs: 300 });
    expect(reads.next(400)).toEqual({ kind: 'OWN_PENDING', afterId: '0-0', first: false });
  });

  it('begins a sweep in time whatever the traffic does, and never waits longer than the block time', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.boolean()), { maxLength: 200 }), (steps) => {
        const reads = plan();
        reads.ownPendingRead(undefined);
        let nowMs = 0;
        let lastSweepMs = 0;
        for (const [elapsedMs, full] of steps) {
          const source = reads.next(nowMs);
          if (source.kind === 'CLAIM') {
            lastSweepMs = nowMs;
            reads.claimed('0-0', nowMs);
          } else if (source.kind === 'NEW') {
            expect(source.blockMs).toBeLessThanOrEqual(2_000);
            nowMs += full ? 0 : source.blockMs;
          }
          nowMs += elapsedMs;
          // The sweep's own period, one turn of work before it, one of new traffic.
          expect(nowMs - lastSweepMs).toBeLessThanOrEqual(500 + 3 * 300);
        }
      }),
    );
  });
});

it('sweeps often against the idle time, but an idle consumer stays idle', () => {
  expect(sweepEveryMs(30_000)).toBe(5_000);
  expect(sweepEveryMs(3_000)).toBe(750);
  expect(sweepEveryMs(100)).toBe(100);
});
