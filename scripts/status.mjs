import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { redisPlace } from './services/banner.mjs';
import { dataFolder } from './services/data-folder.mjs';
import { isLiving } from './services/process-identity.mjs';
import { runningStart } from './services/run-file.mjs';
import { projectRoot } from './setup/project-root.mjs';

const { values } = parseArgs({
  options: { json: { type: 'boolean' }, env: { type: 'boolean' }, 'data-dir': { type: 'string' } },
});
const data = dataFolder(values['data-dir'] === undefined ? join(projectRoot, '.data') : resolve(values['data-dir']));
const run = runningStart(data.runFile);
const report = run?.report;
const processes = (run?.processes ?? []).map((entry) => ({
  name: entry.name,
  pid: entry.pid,
  running: isLiving(entry),
}));

if (values.json === true) {
  process.stdout.write(
    `${JSON.stringify({ running: run !== undefined, ready: report !== undefined, ...report, processes })}\n`,
  );
} else if (values.env === true && report !== undefined) {
  const { url, redisUrl, redisClusterNodes, redisSentinels, redisMasterName } = report;
  const { databaseUrl, buyerToken, adminToken, voucherId } = report;
  const pairs = {
    URL: url,
    REDIS_URL: redisUrl,
    REDIS_CLUSTER_NODES: redisClusterNodes,
    REDIS_SENTINELS: redisSentinels,
    REDIS_MASTER_NAME: redisMasterName,
    DATABASE_URL: databaseUrl,
    BUYER_TOKEN: buyerToken,
    ADMIN_TOKEN: adminToken,
    VOUCHER_ID: voucherId,
  };
  for (const [name, value] of Object.entries(pairs))
    if (value !== undefined) process.stdout.write(`${name}='${value}'\n`);
} else if (run === undefined) {
  process.stdout.write(`Nothing runs on ${data.root}. Start it: npm start\n`);
} else if (report === undefined) {
  process.stdout.write(`npm start (pid ${run.supervisor.pid}) is starting.\n`);
} else {
  const { url, docs, databaseUrl, dataDir } = report;
  const rows = Object.entries({
    API: url,
    Docs: docs,
    Redis: redisPlace(report),
    PostgreSQL: databaseUrl,
    Data: dataDir,
  });
  for (const [label, value] of rows) if (value !== undefined) process.stdout.write(`${label.padEnd(12)} ${value}\n`);
  for (const { name, pid, running } of processes)
    process.stdout.write(`${name.padEnd(18)} pid ${pid}${running ? '' : ' (ended)'}\n`);
  process.stdout.write(`Stop it with: kill ${run.supervisor.pid}\n`);
}
process.exit(run === undefined ? 1 : 0);
