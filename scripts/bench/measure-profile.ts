import { existsSync, readFileSync, rmSync } from 'node:fs';
import type { Sample } from './measurement.js';
import type { CpuProfile } from './profile.js';
import { until } from './sale.js';
import type { Stage } from './stage.js';

/** Profiles the API process while the measurement runs: its figures are higher than without. */
export async function profileDuring(stage: Stage, measure: () => Promise<Sample>): Promise<CpuProfile> {
  rmSync(stage.profileFile, { force: true });
  process.kill(stage.apiPid, 'SIGUSR2');
  await measure();
  process.kill(stage.apiPid, 'SIGUSR2');
  let profile: CpuProfile | undefined;
  await until('the profile is written', () => {
    profile = existsSync(stage.profileFile) ? whole(readFileSync(stage.profileFile, 'utf8')) : undefined;
    return Promise.resolve(profile !== undefined);
  });
  return profile as CpuProfile;
}

/** Undefined while only a part of it is written. */
function whole(text: string): CpuProfile | undefined {
  try {
    return JSON.parse(text) as CpuProfile;
  } catch {
    return undefined;
  }
}
