import { readFileSync } from 'node:fs';
import { closedLoad } from './load.js';
import { answersWith } from './measurement.js';
import { drained, forgetSales, openSale, purchasesOf, until } from './sale.js';
import type { Stage } from './stage.js';

const CONNECTIONS = 128;
/** One turn: purchases of a fresh sale, then refusals by the sold-out one. */
const TURN_REQUESTS = 100_000;
const SOLD_PER_TURN = 5_000;
const MIB = 1_048_576;

/** Memory of the API process after so many requests. */
export interface MemoryReading {
  readonly requests: number;
  readonly rssMib: number;
}

/**
 * Sends `requests` purchases, one in twenty of which is accepted, and reads the resident memory of the API process on the way (ten readings and one
 * before). Each turn has a sale and buyers of its own, so that what is remembered of old ones must go.
 */
export async function measureMemory(
  stage: Stage,
  requests: number,
  say: (line: string) => void,
): Promise<MemoryReading[]> {
  const readings: MemoryReading[] = [];
  const read = (sent: number): void => {
    readings.push({ requests: sent, rssMib: residentMib(stage.apiPid) });
    say(`  ${sent} requests: ${readings.at(-1)?.rssMib.toFixed(0)} MiB`);
  };
  read(0);
  const every = Math.max(TURN_REQUESTS, Math.floor(requests / 10));
  let sent = 0;
  let next = every;
  while (sent < requests) {
    const voucherId = await openSale(stage, SOLD_PER_TURN);
    const turn = purchasesOf(stage.secret, [voucherId], Math.min(TURN_REQUESTS, requests - sent));
    const load = await closedLoad(stage.apiPort, CONNECTIONS, turn);
    answersWith(409, { ...load, sent: Math.max(0, load.sent - SOLD_PER_TURN) }, 'refusals');
    sent += turn.length;
    await until('the orders are stored', drained(stage));
    await forgetSales(stage, [voucherId]);
    if (sent < next) continue;
    read(sent);
    next += every;
  }
  return readings;
}

/** The readings as lines of Markdown. */
export function memoryTable(readings: readonly MemoryReading[]): string[] {
  return [
    '| requests | RSS of the API process, MiB |',
    '|---|---|',
    ...readings.map(({ requests, rssMib }) => `| ${requests.toLocaleString('en')} | ${rssMib.toFixed(0)} |`),
  ];
}

function residentMib(pid: number): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
  return (pages * 4_096) / MIB;
}
