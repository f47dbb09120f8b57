import 'reflect-metadata';
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { dirname, join } from 'node:path';
import { parseBenchOptions, USAGE, type BenchOptions } from './bench/options.js';
import { measureMemory, memoryTable } from './bench/measure-memory.js';
import { runProfiles } from './bench/profile-run.js';
import { publish, publishProfile } from './bench/publish.js';
import { scriptClient } from './bench/measure-script.js';
import { type BenchReport, figureTable, machine, ratioTable, reportOf, settingLines } from './bench/report.js';
import { BenchRun } from './bench/run.js';
import { Stage } from './bench/stage.js';
import { versionsOf } from './bench/versions.js';
import { listenForStop } from './services/stop-request.mjs';
import { projectRoot } from './setup/project-root.mjs';
import { StartFailure, tellFailure } from './setup/start-failure.mjs';

/** `npm run bench`: the performance ratios, A and B side by side in one run. Exit codes: see USAGE; 130: it was interrupted. */
async function main(): Promise<number> {
  const parsed = parseBenchOptions(process.argv.slice(2));
  if (parsed.kind === 'HELP') {
    process.stdout.write(USAGE);
    return 0;
  }
  if (parsed.kind === 'BAD') {
    process.stderr.write(`${parsed.problems.join('\n')}\n\n${USAGE}`);
    return 2;
  }
  if (process.platform !== 'linux') {
    process.stderr.write('npm run bench reads the CPU of each process from /proc: it runs on Linux only.\n');
    return 2;
  }
  const { options } = parsed;
  const { signal } = listenForStop({ onForce: () => process.exit(130) });
  let stage: Stage | undefined;
  try {
    const loadAverageBefore = loadavg()[0] ?? 0;
    stage = await Stage.open(signal, options.profile);
    if (options.profile) return await profile(stage, options);
    const say = (line: string): void => void process.stderr.write(`${line}\n`);
    if (options.rssRequests !== undefined) {
      const readings = await measureMemory(stage, options.rssRequests, say);
      process.stdout.write(`${memoryTable(readings).join('\n')}\n`);
      return 0;
    }
    const result = await new BenchRun(stage, options, say, signal).run();
    const report = reportOf(
      {
        takenAt: new Date().toISOString(),
        smoke: options.smoke,
        rounds: options.rounds,
        machine: machine(),
        loadAverageBefore,
        versions: await versionsOf(stage),
        settings: {
          Redis: 'appendonly yes, appendfsync always',
          PostgreSQL: 'defaults, fsync on, track_commit_timestamp on',
          product: 'one API process (CONSUMER_ENABLED=false) and one worker, defaults otherwise',
          script: `called by ${scriptClient(stage)}`,
        },
        sizes: options.sizes,
      },
      result,
    );
    tell(report);
    keep(report, options);
    return !options.smoke && report.ratios.some(({ judgement }) => judgement === 'MISSED') ? 1 : 0;
  } catch (error) {
    if (signal.aborted) return 130;
    if (!(error instanceof StartFailure)) throw error;
    process.stderr.write(`${tellFailure(error, 'npm run bench', process.env['LOG_LEVEL'])}\n`);
    return 2;
  } finally {
    await stage?.close();
  }
}

async function profile(stage: Stage, { sizes, publish: isPublished }: BenchOptions): Promise<number> {
  const lines = await runProfiles(stage, sizes);
  process.stdout.write(`${lines.join('\n')}\n`);
  if (isPublished) publishProfile(lines);
  return 0;
}

function tell(report: BenchReport): void {
  const lines = [...settingLines(report), '', ...figureTable(report), '', ...ratioTable(report)];
  process.stdout.write(`${lines.join('\n')}\n`);
}

function keep(report: BenchReport, { jsonFile, publish: isPublished }: BenchOptions): void {
  const file = jsonFile ?? join(projectRoot, `bench/results/${report.setting.takenAt.replaceAll(':', '-')}.json`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(report, undefined, 1)}\n`);
  process.stderr.write(`The figures: ${file}\n`);
  if (isPublished) publish(report);
}

process.exit(
  await main().catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    return 2;
  }),
);
