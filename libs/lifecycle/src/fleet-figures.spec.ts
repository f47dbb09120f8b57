import { Counter, Gauge, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { FleetFigures, type FiguresSource, finite } from './fleet-figures.js';
import type { Figures } from './fleet-messages.js';

/** A process with one counter and two gauges, one of which is the same for all. */
class Process implements FiguresSource {
  private readonly registry = new Registry();
  private readonly sold = new Counter({ name: 'sold_total', help: '-', registers: [this.registry] });
  private readonly inHand = new Gauge({ name: 'in_hand', help: '-', registers: [this.registry] });
  private readonly length = new Gauge({ name: 'length', help: '-', aggregator: 'max', registers: [this.registry] });
  isSilent = false;
  answer: (id: number, figures: Figures) => void = () => undefined;

  constructor(readonly key: number) {
    this.length.set(7);
    this.inHand.set(1);
  }

  sell(count: number): void {
    this.sold.inc(count);
  }

  /** Tells a copy, as the channel does. */
  ask(id: number): void {
    if (!this.isSilent)
      void this.registry.getMetricsAsJSON().then((figures) => this.answer(id, structuredClone(finite(figures))));
  }
}

function fleetOf(...processes: Process[]): {
  figures: FleetFigures;
  kill: (process: Process) => void;
  read: () => Promise<(number | undefined)[]>;
} {
  const living = new Set(processes);
  const figures = new FleetFigures(() => [...living], 50);
  for (const process of processes) process.answer = (id, told) => figures.told(process.key, id, told);
  return {
    figures,
    kill: (process) => {
      living.delete(process);
      figures.gone(process.key);
    },
    read: async () => {
      const text = await figures.metrics();
      return ['sold_total', 'in_hand', 'length'].map((name) => {
        const value = new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1];
        return value === undefined ? undefined : Number(value);
      });
    },
  };
}

describe('the figures of a fleet', () => {
  it('are summed, what all share excepted', async () => {
    const [a, b] = [new Process(1), new Process(2)];
    a.sell(3);
    b.sell(4);
    expect(await fleetOf(a, b).read()).toEqual([7, 2, 7]);
  });

  it('keep the counts, not the gauges, of who is silent and of who has ended; no sum falls', async () => {
    const [a, b] = [new Process(1), new Process(2)];
    const fleet = fleetOf(a, b);
    b.sell(4);
    expect(await fleet.read()).toEqual([4, 2, 7]);
    b.isSilent = true;
    b.sell(1);
    a.sell(1);
    expect(await fleet.read()).toEqual([5, 1, 7]);
    fleet.kill(b);
    expect(await fleet.read()).toEqual([5, 1, 7]);
    fleet.kill(a);
    expect(await fleet.read()).toEqual([5, undefined, undefined]);
  });

  it('of many that have ended are kept as one, without loss', async () => {
    const many = Array.from({ length: 20 }, (_, index) => new Process(index));
    const fleet = fleetOf(...many);
    for (const each of many) each.sell(1);
    await fleet.read();
    many.forEach((each) => fleet.kill(each));
    expect([await fleet.read(), await fleet.read()]).toEqual([
      [20, undefined, undefined],
      [20, undefined, undefined],
    ]);
  });

  it('do not wait for who ended while it was asked', async () => {
    const [a, b] = [new Process(1), new Process(2)];
    const fleet = fleetOf(a, b);
    b.isSilent = true;
    a.sell(2);
    const read = fleet.read();
    fleet.kill(b);
    expect(await read).toEqual([2, 1, 7]);
  });

  it('leave out what is no number: the channel would turn it into null', async () => {
    const registry = new Registry();
    new Gauge({ name: 'odd', help: '-', registers: [registry] }).set(NaN);
    expect(finite(await registry.getMetricsAsJSON())).toMatchObject([{ name: 'odd', values: [] }]);
  });
});
