import { describe, expect, it } from 'vitest';
import { explore, StateLimitExceeded, type Model, type Step } from './explorer.js';

/** Two processes add one to a counter: read, then write what was read plus one; `atomic` joins both into one step. */
interface Counter {
  value: number;
  read: [number | undefined, number | undefined];
  done: [boolean, boolean];
}

function counterModel(atomic: boolean): Model<Counter> {
  const steps = (state: Counter): Step<Counter>[] =>
    [0, 1].flatMap((process) => {
      if (state.done[process]) return [];
      const next = structuredClone(state);
      const read = atomic ? state.value : state.read[process];
      if (read === undefined) {
        next.read[process] = state.value;
        return [{ label: `${process} reads`, next }];
      }
      next.value = read + 1;
      next.read[process] = undefined;
      next.done[process] = true;
      return [{ label: `${process} writes`, next }];
    });
  return {
    initial: { value: 0, read: [undefined, undefined], done: [false, false] },
    steps,
    encode: (state) => JSON.stringify(state),
    properties: {
      COUNT: (state) => (state.done.every(Boolean) && state.value !== 2 ? `counted ${state.value}` : undefined),
    },
    settled: { property: 'ENDS', holds: (state) => state.done.every(Boolean) },
    describe: (state) => JSON.stringify(state),
  };
}

/** A line of `length` states; from the last one a fault leads back to the start, nothing else does. */
function lineModel(length: number, settledAt: number): Model<number> {
  return {
    initial: 0,
    steps: (at) => {
      if (at + 1 < length) return [{ label: `to ${at + 1}`, next: at + 1 }];
      return [{ label: 'back', next: 0, fault: true }];
    },
    encode: String,
    properties: {},
    settled: { property: 'ENDS', holds: (at) => at === settledAt },
    describe: String,
  };
}

describe('explore', () => {
  it('finds the lost update, by a shortest trace', () => {
    const { violation } = explore(counterModel(false));
    expect(violation).toMatchObject({ property: 'COUNT', detail: 'counted 1' });
    expect(violation?.trace).toHaveLength(4);
    expect(violation?.trace.slice(0, 2).sort()).toEqual(['0 reads', '1 reads']);
    expect(violation?.text).toContain('  4. ');
  });

  it('passes the atomic counter after visiting every state and step', () => {
    expect(explore(counterModel(true))).toEqual({ states: 4, transitions: 4, depth: 2 });
  });

  it('finds the nearest state that can no longer settle; a fault is no way out', () => {
    expect(explore(lineModel(4, 3)).violation).toBeUndefined();
    expect(explore(lineModel(4, 1)).violation).toMatchObject({ property: 'ENDS', trace: ['to 1', 'to 2'] });
  });

  it('proves nothing beyond its limit, and says so', () => {
    expect(() => explore(lineModel(100, 99), 50)).toThrow(StateLimitExceeded);
  });
});
