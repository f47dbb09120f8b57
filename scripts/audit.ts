import 'reflect-metadata';
import { parseArgs } from 'node:util';
import { readSettings } from '#config';
import { runAudit } from './audit-run.js';

/**
 * `npm run audit [-- --repair] [--json]`: do Redis, stream and database agree? Names each difference; `--repair` removes it and looks again. Exit
 * code 0: they agree, 1: they differ, 2: it could not be seen.
 */
const USAGE = `npm run audit [-- --repair] [--json]
  --repair  removes the differences and looks again; safe during traffic
  --json    one line of JSON
Reads REDIS_URL, DATABASE_URL and the other settings of the service; those of a running \`npm start\` where they are not given.
`;

async function main(): Promise<number> {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        repair: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    return 2;
  }
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  // The audit checks no tokens and consumes nothing, whatever the service's environment says.
  const read = readSettings({ ...process.env, CONSUMER_ENABLED: 'false' }, { authRequired: false });
  if (!read.ok) {
    process.stderr.write(
      `Bad settings (${read.problems.length}):\n${read.problems.map((line) => `  ${line}\n`).join('')}`,
    );
    return 2;
  }
  const colour = process.stdout.isTTY && process.env['NO_COLOR'] === undefined;
  return runAudit(read.settings, { repair: values.repair, json: values.json, colour }, (line) => console.log(line));
}

process.exitCode = await main();
