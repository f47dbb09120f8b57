import { afterAll, describe, expect, it } from 'vitest';
import { designs, mutations } from './configurations.js';
import type { Exploration } from './explorer.js';
import { exploreProtocol } from './protocol.js';
import type { Switch } from './world.js';

const lines: string[] = [];

function note(name: string, { states, transitions, depth, violation }: Exploration): void {
  const verdict = violation === undefined ? 'holds' : `${violation.property} after ${violation.trace.length} steps`;
  const figures = `${String(states).padStart(7)} states ${String(transitions).padStart(8)} steps, depth ${String(depth).padStart(2)}`;
  lines.push(`${figures}  ${name}: ${verdict}`);
}

afterAll(() => console.log(`Model of the protocol (docs/protocol.md)\n${lines.join('\n')}`));

describe('the protocol as designed keeps P1, P2 and P3 in every interleaving', () => {
  it.each(Object.entries(designs))(
    '%s',
    (name, sizes) => {
      const exploration = exploreProtocol(sizes);
      note(name, exploration);
      expect(exploration.violation?.text).toBeUndefined();
      expect(exploration.states).toBeGreaterThan(100);
    },
    60_000,
  );
});

describe('each safeguard is needed: without it the model goes red', () => {
  it.each(Object.entries(mutations))(
    '%s',
    (name, { breaks, sizes }) => {
      const { violation: withSafeguard } = exploreProtocol(sizes);
      expect(withSafeguard?.text).toBeUndefined();
      const exploration = exploreProtocol({ ...sizes, switches: new Set([name as Switch]) });
      note(name, exploration);
      expect(exploration.violation?.property).toBe(breaks);
      expect(exploration.violation?.trace.length).toBeGreaterThan(0);
    },
    60_000,
  );
});
