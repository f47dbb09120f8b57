import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { dataFolder, keptSecret } from './services/data-folder.mjs';
import { isUserId, signToken } from './services/signed-token.mjs';
import { projectRoot } from './setup/project-root.mjs';

const HELP = `npm run -s token -- --user 42 [--role admin] [--hours 24]
  Prints a token for the running secret: AUTH_JWT_SECRET, else the one that npm start keeps in .data.
  --user   the user's id, 1..9223372036854775807
  --role   admin or payment; none for a buyer
  --hours  how long it is valid, 24 by default`;

/** @param {string} why */
function refuse(why) {
  process.stderr.write(`${why}\n\n${HELP}\n`);
  process.exit(2);
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        user: { type: 'string' },
        role: { type: 'string' },
        hours: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
    return values;
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

const { user, role, hours = '24', help } = readOptions() ?? {};
if (help === true) {
  process.stdout.write(`${HELP}\n`);
  process.exit(0);
}
if (user === undefined || !isUserId(user)) refuse('--user needs an id: a decimal number 1..9223372036854775807');
else if (!/^[1-9]\d{0,4}$/.test(hours)) refuse('--hours needs a whole number 1..99999');
else {
  const secret = process.env['AUTH_JWT_SECRET'] || keptSecret(dataFolder(join(projectRoot, '.data')).jwtSecret);
  process.stdout.write(`${signToken({ secret, user, role, lifeSeconds: Number(hours) * 3600 })}\n`);
}
