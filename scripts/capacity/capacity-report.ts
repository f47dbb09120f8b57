import { type Capacity, type Demand, FULLEST_CORE, MARK_BYTES } from './capacity-model.js';
import type { MeasuredCosts } from './measured-costs.js';

const whole = (number: number): string => Math.round(number).toLocaleString('en-US');
const figure = (number: number): string => number.toLocaleString('en-US', { maximumSignificantDigits: 3 });

/** The lines that `npm run capacity` prints. */
export function capacityLines(demand: Demand, costs: MeasuredCosts, need: Capacity): string[] {
  const hot = need.hottestVoucherShare;
  return [
    `${whole(demand.rate)} purchases/s of ${whole(demand.buyers)} buyers for ${whole(demand.stock)} units of ${whole(demand.vouchers)} voucher(s)`,
    '',
    `  API processes            ${whole(need.apiProcesses)}`,
    `  Redis primaries          ${whole(need.redisPrimaries)}`,
    `  workers                  ${whole(need.workers)}`,
    `  database writes per s    ${whole(need.databaseWritesPerSecond)} order rows`,
    `  memory of the marks      ${figure(need.redisMarkBytes / 2 ** 20)} MiB`,
    '',
    `The units last for ${figure(need.sellsForSeconds)} s at this rate. The hottest voucher takes ${figure(hot * 100)} % of one Redis core.`,
    ...(hot > FULLEST_CORE
      ? [
          'That is more than one core may give: see docs/scaling.md, "One very hot voucher"; until then it sells more slowly than asked.',
        ]
      : []),
    '',
    'Assumptions',
    `  Costs as measured on ${costs.machine}, ${costs.takenAt}:`,
    `    accepted purchase ${figure(costs.acceptedApiUs)} us API, ${figure(costs.acceptedRedisUs)} us Redis; sold-out answer ${figure(costs.refusedApiUs)} us API;`,
    `    one worker stores ${whole(costs.storedPerSecond)} orders/s.`,
    `  Cores are at most ${FULLEST_CORE * 100} % full, one process to a core; cores of production are as fast as the bench's.`,
    `  Refusals after the last unit are answered from memory. Demand is spread evenly over vouchers, and vouchers over partitions and primaries.`,
    `  Orders are to be stored within ${whole(demand.storedWithinSeconds)} s. A mark takes ${MARK_BYTES} bytes. Replicas, spares and the balancer come on top.`,
  ];
}
