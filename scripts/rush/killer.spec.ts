import { describe, expect, it } from 'vitest';
import { Killer } from './killer.js';

function killerOf(up: Record<string, number>) {
  const pids: number[] = [];
  const processes = () => Object.entries(up).map(([name, pid]) => ({ name, pid, isUp: pid > 0 }));
  return { pids, killer: new Killer({ processes }, 1_000, (pid) => void pids.push(pid)) };
}

describe('Killer', () => {
  it('kills one of each due time, whoever was killed the longest ago, and never a store', () => {
    const { pids, killer } = killerOf({ Redis: 1, 'API process 1': 2, 'API process 2': 3, 'worker 1': 4 });
    for (let nowMs = 0; nowMs < 6_000; nowMs += 500) killer.look(nowMs);
    expect(pids).toEqual([2, 3, 4, 2, 3, 4]);
    expect(killer.kills).toBe(6);
  });

  it('spares the last API process that is up, and no worker; a kill that is due follows as soon as it may', () => {
    const up: Record<string, number> = { 'API process 1': 5, 'API process 2': 0, 'worker 1': 0 };
    const { pids, killer } = killerOf(up);
    killer.look(1_000);
    expect(pids).toEqual([]);
    up['worker 1'] = 7;
    killer.look(1_700);
    up['worker 1'] = 0;
    up['API process 2'] = 6;
    killer.look(2_600);
    killer.look(2_700);
    expect(pids).toEqual([7, 5]);
  });
});
