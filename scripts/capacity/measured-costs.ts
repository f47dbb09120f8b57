import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What one operation costs on the machine of the bench. Microseconds of CPU are medians. */
export interface MeasuredCosts {
  readonly takenAt: string;
  readonly machine: string;
  /** API process and Redis, for a purchase that is accepted. */
  readonly acceptedApiUs: number;
  readonly acceptedRedisUs: number;
  /** API process, for a purchase that is refused because all is sold. */
  readonly refusedApiUs: number;
  /** Orders that one worker stores per second, from a full queue. */
  readonly storedPerSecond: number;
}

/** The bench was not run, or its result lacks a figure. The message says which. */
export class NoCostsError extends Error {}

interface Figure {
  readonly name: string;
  readonly operationsPerSecond?: { readonly median?: number };
  readonly cpuUs?: Readonly<Record<string, number>>;
}

interface Report {
  readonly setting?: { readonly takenAt?: string; readonly machine?: string; readonly smoke?: boolean };
  readonly figures?: readonly Figure[];
}

/** The costs of the newest bench result in the folder. @throws NoCostsError */
export function readCosts(folder: string): MeasuredCosts {
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.json')) : [];
  const reports = files
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Report)
    .filter(({ setting }) => setting?.smoke !== true)
    .sort((a, b) => (b.setting?.takenAt ?? '').localeCompare(a.setting?.takenAt ?? ''));
  const [newest] = reports;
  if (newest === undefined) throw new NoCostsError(`there is no result of a whole bench in ${folder}`);
  return costsOf(newest);
}

/** @throws NoCostsError naming the figure that is missing */
export function costsOf(report: Report): MeasuredCosts {
  const figure = (name: string): Figure => {
    const found = report.figures?.find((each) => each.name === name);
    if (found === undefined) throw new NoCostsError(`the last bench did not measure "${name}"`);
    return found;
  };
  const number = (value: number | undefined, what: string): number => {
    if (value === undefined || !Number.isFinite(value) || value <= 0)
      throw new NoCostsError(`the last bench has no figure for ${what}`);
    return value;
  };
  const accepted = figure('acceptance, 64 connections');
  const refused = figure('sold-out answers');
  const drain = figure('drain of a queue');
  return {
    takenAt: report.setting?.takenAt ?? 'unknown',
    machine: report.setting?.machine ?? 'unknown',
    acceptedApiUs: number(accepted.cpuUs?.['api'], "an accepted purchase's CPU in the API process"),
    acceptedRedisUs: number(accepted.cpuUs?.['redis'], "an accepted purchase's CPU in Redis"),
    refusedApiUs: number(refused.cpuUs?.['api'], "a sold-out answer's CPU in the API process"),
    storedPerSecond: number(drain.operationsPerSecond?.median, 'orders stored per second'),
  };
}
