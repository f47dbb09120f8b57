import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/**
 * The CPU that processes have used, by the operating system's accounting (Linux): user and system time. Each process counts with its descendants,
 * also those that have ended and were waited for (PostgreSQL's sessions, Redis's rewrites).
 */
export class CpuClock {
  private readonly tickUs = 1e6 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

  /** Microseconds used so far by the processes and everything they started. */
  readUs(rootPids: readonly number[]): number {
    const pids = withDescendants(rootPids);
    let us = 0;
    for (const pid of pids) us += this.ofOneUs(pid);
    return us;
  }

  private ofOneUs(pid: number): number {
    const fields = statFields(pid);
    if (fields === undefined) return 0;
    const [userTicks = 0, systemTicks = 0, childUserTicks = 0, childSystemTicks = 0] = fields.slice(11, 15).map(Number);
    // The scheduler's sum is exact but forgets threads that have ended; the ticks count those too.
    const own = Math.max(threadsUs(pid), (userTicks + systemTicks) * this.tickUs);
    return own + (childUserTicks + childSystemTicks) * this.tickUs;
  }
}

/** The fields of /proc/PID/stat from the state on; undefined where the process is gone. */
function statFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function threadsUs(pid: number): number {
  try {
    let ns = 0;
    for (const thread of readdirSync(`/proc/${pid}/task`))
      ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
    return ns / 1_000;
  } catch {
    return 0;
  }
}

function withDescendants(rootPids: readonly number[]): Set<number> {
  const childrenOf = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    const parent = Number.isInteger(pid) ? statFields(pid)?.[1] : undefined;
    if (parent === undefined) continue;
    const siblings = childrenOf.get(Number(parent));
    if (siblings === undefined) childrenOf.set(Number(parent), [pid]);
    else siblings.push(pid);
  }
  const found = new Set<number>();
  const queue = [...rootPids];
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    if (found.has(pid)) continue;
    found.add(pid);
    queue.push(...(childrenOf.get(pid) ?? []));
  }
  return found;
}
