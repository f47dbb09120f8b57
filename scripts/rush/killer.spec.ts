import { describe, expect, it } from 'vitest';
import { Killer } from './killer.js';

/** Pids by name; those in `starting` are not up yet. */
function killerOf(running: Record<string, number>, starting: Set<string> = new Set()) {
  const pids: number[] = [];
  const processes = () => Object.entries(running).map(([name, pid]) => ({ name, pid, isUp: !starting.has(name) }));
  return { pids, killer: new Killer({ processes }, 1_000, (pid) => void pids.push(pid)) };
}

describe('Killer', () => {
  it('kills one of each due time, whoever was killed the longest ago, and never a store', () => {
    const { pids, killer } = killerOf({ Redis: 1, 'API process 1': 2, 'API process 2': 3, 'worker 1': 4 });
    for (let nowMs = 0; nowMs < 6_000; nowMs += 500) killer.look(nowMs);
    expect(pids).toEqual([2, 3, 4, 2, 3, 4]);
    expect(killer.kills).toBe(6);
  });

  it('spares the last API process that is up and those that start, and no worker; a kill that is due follows as soon as it may', () => {
    const running: Record<string, number> = { 'API process 1': 5, 'API process 2': 6 };
    const starting = new Set(['API process 2']);
    const { pids, killer } = killerOf(running, starting);
    killer.look(1_000);
    expect(pids).toEqual([]);
    running['worker 1'] = 7;
    killer.look(1_700);
    delete running['worker 1'];
    starting.clear();
    killer.look(2_600);
    killer.look(2_700);
    expect(pids).toEqual([7, 5]);
  });

  it('kills a worker that is still starting only where nobody who is up may be killed', () => {
    const starting = new Set(['worker 1']);
    const { pids, killer } = killerOf({ 'API process 1': 5, 'worker 1': 7, 'worker 2': 8 }, starting);
    killer.look(0);
    starting.add('worker 2');
    killer.look(1_000);
    killer.look(2_000);
    expect(pids).toEqual([8, 7, 8]);
  });
});
