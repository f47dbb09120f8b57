import type { Sample } from './measurement.js';
import { profileDuring } from './measure-profile.js';
import { measureAcceptance, measureSoldOut } from './measure-purchases.js';
import type { BenchSizes } from './options.js';
import { profileTable } from './profile.js';
import type { Stage } from './stage.js';

const CONNECTIONS = 64;

/** `npm run bench -- --profile`: how one purchase and one refusal spend their microseconds in the API process. Lines of Markdown. */
export async function runProfiles(stage: Stage, { purchases, refusals }: BenchSizes): Promise<string[]> {
  const kinds: readonly (readonly [string, () => Promise<Sample>])[] = [
    ['An accepted purchase', () => measureAcceptance(stage, CONNECTIONS, purchases)],
    ['A sold-out answer', () => measureSoldOut(stage, CONNECTIONS, refusals)],
  ];
  const lines: string[] = [];
  for (const [title, measure] of kinds) {
    await measure();
    const { cpuUs } = await measure();
    const profile = await profileDuring(stage, measure);
    lines.push(`### ${title}`, '', ...profileTable(profile, cpuUs['api'] ?? NaN), '');
  }
  return lines;
}
