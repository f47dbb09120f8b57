import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type LabResult, MEANS, runScenario, SCENARIOS } from './lab-run.js';

/** `npm run lab [-- --orders 20000 --away-ms 5000 --json]`: the same orders through each queue, under each fault, as a table. */
const { values } = parseArgs({
  options: {
    orders: { type: 'string', default: '20000' },
    'away-ms': { type: 'string', default: '5000' },
    json: { type: 'boolean', default: false },
  },
});
const dir = mkdtempSync(join(tmpdir(), 'queue-lab-'));
const options = { orders: Number(values.orders), awayMs: Number(values['away-ms']), dir };
const results: LabResult[] = [];

if (!values.json)
  console.log(row(['queue', 'under', 'accepted', 'delivered', 'lost', 'twice', 'order', 'orders/s', 'memory']));
for (const means of MEANS) {
  for (const scenario of SCENARIOS) {
    const result = await runScenario(means, scenario, options);
    results.push(result);
    if (!values.json) console.log(line(result));
  }
}
if (values.json) console.log(JSON.stringify(results));
rmSync(dir, { recursive: true, force: true });

function line(result: LabResult): string {
  const { means, scenario, accepted, delivered, lost, twice, orderKept, ordersPerSecond, memoryBytes } = result;
  const megabytes = `${(memoryBytes / 1024 / 1024).toFixed(1)} MB`;
  return row([
    means,
    scenario,
    accepted,
    delivered,
    lost,
    twice,
    orderKept ? 'kept' : 'broken',
    ordersPerSecond,
    megabytes,
  ]);
}

function row(cells: (string | number)[]): string {
  const widths = [14, 16, 9, 10, 7, 7, 7, 9, 9];
  return cells
    .map((cell, at) => (at < 2 ? String(cell).padEnd(widths[at] ?? 0) : String(cell).padStart(widths[at] ?? 0)))
    .join(' ');
}
