import type { Stage } from '../stage.js';

/** Keeps the workers from the database until the purchases of a whole rush wait, so that the drain is a long one. */
export async function gather(stage: Stage): Promise<void> {
  for (const { database } of stage.world.workers) database.refuse();
  await stage.rush().done;
}

export function letDrain(stage: Stage): void {
  for (const { database } of stage.world.workers) database.heal();
}

/** Waits until all is stored, and holds the time (from `startMs` on) to the limit. */
export async function drainMeasured(
  stage: Stage,
  limitMs: number,
  what: string,
  startMs = performance.now(),
): Promise<void> {
  await stage.drained();
  stage.recoveryMs = Math.round(performance.now() - startMs);
  stage.expect(stage.recoveryMs <= limitMs, `I8 ${what} took ${stage.recoveryMs} ms, the limit is ${limitMs} ms`);
}
