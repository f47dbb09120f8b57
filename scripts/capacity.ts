import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { capacityOf, type Demand } from './capacity/capacity-model.js';
import { capacityLines } from './capacity/capacity-report.js';
import { NoCostsError, readCosts } from './capacity/measured-costs.js';
import { projectRoot } from './setup/project-root.mjs';

/** `npm run capacity`: how much of everything a sale needs, from the costs of the last bench. Exit code 2 where it cannot be told. */
const USAGE = `npm run capacity -- --rate 1000000 --buyers 50000000 --stock 100000
  --rate N           purchases per second at the peak
  --buyers N         buyers in all
  --stock N          units in all
  --vouchers N       vouchers that share the demand evenly (1)
  --stored-within N  seconds until the last order stands in the database (60)
`;

function wholeNumber(name: string, text: string | undefined): number {
  if (text === undefined || !/^[1-9]\d{0,14}$/.test(text))
    throw new TypeError(`--${name} must be a whole number above 0`);
  return Number(text);
}

function readDemand(): Demand {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { rate: text, buyers: text, stock: text, vouchers: text, 'stored-within': text },
  });
  return {
    rate: wholeNumber('rate', values.rate),
    buyers: wholeNumber('buyers', values.buyers),
    stock: wholeNumber('stock', values.stock),
    vouchers: wholeNumber('vouchers', values.vouchers ?? '1'),
    storedWithinSeconds: wholeNumber('stored-within', values['stored-within'] ?? '60'),
  };
}

function main(): number {
  try {
    const demand = readDemand();
    const costs = readCosts(join(projectRoot, 'bench/results'));
    for (const line of capacityLines(demand, costs, capacityOf(demand, costs))) console.log(line);
    return 0;
  } catch (error) {
    if (error instanceof NoCostsError) process.stderr.write(`${error.message}: run npm run bench first.\n`);
    else process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    return 2;
  }
}

process.exitCode = main();
