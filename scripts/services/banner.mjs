/**
 * What a start tells: the shape of `npm start -- --json`, of .data/run.json and of `npm run status -- --json`.
 * @typedef {object} RunReport
 * @property {string} url
 * @property {string} docs
 * @property {string} metrics
 * @property {string} health
 * @property {number} pid of the start command; SIGTERM to it ends everything
 * @property {string} dataDir
 * @property {boolean} dataKept
 * @property {string} durability
 * @property {string | undefined} redisUrl undefined where a cluster or sentinels are used
 * @property {string | undefined} [redisClusterNodes]
 * @property {string | undefined} [redisSentinels]
 * @property {string | undefined} [redisMasterName] of the sentinels
 * @property {string} databaseUrl
 * @property {string} logDir
 * @property {string | undefined} voucherId
 * @property {string | undefined} buyerId
 * @property {string | undefined} buyerToken
 * @property {string | undefined} adminToken
 * @property {string | undefined} curl buys one unit of the demo voucher
 */

/**
 * The command that buys, for a POSIX shell.
 * @param {{ url: string, voucherId: string, buyerToken: string }} purchase
 */
export function curlLine({ url, voucherId, buyerToken }) {
  return `curl -sS -i -X POST ${url}/v1/vouchers/${voucherId}/orders -H 'Authorization: Bearer ${buyerToken}'`;
}

/**
 * Where Redis is, in one line.
 * @param {Pick<RunReport, 'redisUrl' | 'redisClusterNodes' | 'redisSentinels' | 'redisMasterName'>} report
 */
export function redisPlace({ redisUrl, redisClusterNodes, redisSentinels, redisMasterName }) {
  if (redisClusterNodes !== undefined) return `cluster ${redisClusterNodes}`;
  if (redisSentinels !== undefined) return `${redisMasterName ?? ''} of the sentinels ${redisSentinels}`;
  return redisUrl;
}

/**
 * The last lines on the screen.
 * @param {RunReport} report
 * @param {{ host: string, secretNote: string }} notes
 * @returns {string}
 */
export function banner(report, { host, secretNote }) {
  /** @type {[string, string | undefined][]} */
  const rows = [
    ['API', report.url],
    ['Docs', report.docs],
    ['Metrics', report.metrics],
    ['Health', report.health],
    ['Redis', redisPlace(report)],
    ['PostgreSQL', report.databaseUrl],
    ['Data', report.dataKept ? `${report.dataDir} (kept; npm run reset removes it)` : report.dataDir],
    ['Durability', report.durability],
    ['Logs', report.logDir],
    ["Buyer's token", report.buyerToken === undefined ? undefined : `${report.buyerToken} (user ${report.buyerId})`],
    ["Admin's token", report.adminToken],
    ['Mode', `development: ${secretNote}, ${boundTo(host)}`],
    ['Stop', `Ctrl+C or kill ${report.pid}: stops everything that was started`],
  ];
  const lines = rows.flatMap(([label, value]) => (value === undefined ? [] : [`  ${label.padEnd(14)} ${value}`]));
  const buy =
    report.curl === undefined
      ? ['  No demo voucher: tokens come from AUTH_JWKS_URL, so none could be signed here.']
      : [`  Buy voucher ${report.voucherId} (paste this line):`, '', report.curl];
  return ['', ...lines, '', ...buy, ''].join('\n');
}

/** @param {string} host */
function boundTo(host) {
  const local = /^127\.|^localhost$|^::1$/.test(host);
  return local ? `bound to ${host}` : `bound to ${host}: OTHER MACHINES CAN REACH IT`;
}

/**
 * An address without its password, for the screen.
 * @param {string} url
 */
export function withoutPassword(url) {
  try {
    const shown = new URL(url);
    if (shown.password !== '') shown.password = '***';
    return shown.href;
  } catch {
    return '(not shown)';
  }
}
