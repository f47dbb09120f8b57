import { LatencyHistogram } from '../rush/latency-histogram.js';
import { LoadConnection } from './load-connection.js';

/** What a load saw. */
export interface LoadResult {
  readonly sent: number;
  /** Answers by status; 0 counts broken connections. */
  readonly byStatus: ReadonlyMap<number, number>;
  readonly wallMs: number;
  /** From sending (closed load) or from the intended time (open load), in microseconds. */
  readonly latency: LatencyHistogram;
  /** What the generator itself used, in microseconds of CPU. */
  readonly generatorUs: number;
  /** Open load: requests that found every connection taken when they were due. */
  readonly waited: number;
}

interface Tally {
  readonly byStatus: Map<number, number>;
  readonly latency: LatencyHistogram;
}

/** Sends the requests over the connections, each sending its next when its answer has come. */
export async function closedLoad(port: number, connections: number, requests: readonly string[]): Promise<LoadResult> {
  return withConnections(port, Math.min(connections, requests.length), async (open, { byStatus, latency }) => {
    let next = 0;
    let left = requests.length;
    await new Promise<void>((resolve) => {
      const serve = (connection: LoadConnection): void => {
        const request = requests[next++];
        if (request === undefined) return;
        const sentMs = performance.now();
        connection.send(request, (status) => {
          latency.record((performance.now() - sentMs) * 1_000);
          byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
          left -= 1;
          if (left === 0) resolve();
          else serve(connection);
        });
      };
      for (const connection of open) serve(connection);
    });
    return 0;
  });
}

/** Sends request n when it is due, at start + n / rate, or as soon after it as a connection is free; latency counts from when it was due. */
export async function openLoad(
  port: number,
  connections: number,
  requests: readonly string[],
  ratePerSecond: number,
): Promise<LoadResult> {
  return withConnections(port, connections, async (open, { byStatus, latency }) => {
    // In turn: one that was left lying for long would be closed by the server.
    const free = [...open];
    const startMs = performance.now();
    let next = 0;
    let left = requests.length;
    let waited = 0;
    await new Promise<void>((resolve) => {
      const sendDue = (): void => {
        const due = Math.min(requests.length, Math.floor(((performance.now() - startMs) * ratePerSecond) / 1_000) + 1);
        while (next < due) {
          const connection = free.shift();
          if (connection === undefined) return;
          const dueMs = startMs + (next * 1_000) / ratePerSecond;
          connection.send(requests[next++] as string, (status) => {
            latency.record((performance.now() - dueMs) * 1_000);
            byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
            if (free.length === 0) waited += 1;
            free.push(connection);
            left -= 1;
            if (left > 0) return;
            clearInterval(timer);
            resolve();
          });
        }
      };
      const timer = setInterval(sendDue, 1);
    });
    return waited;
  });
}

async function withConnections(
  port: number,
  count: number,
  run: (open: readonly LoadConnection[], tally: Tally) => Promise<number>,
): Promise<LoadResult> {
  const open = Array.from({ length: count }, () => new LoadConnection(port));
  await Promise.all(open.map((connection) => connection.open()));
  const tally = { byStatus: new Map<number, number>(), latency: new LatencyHistogram() };
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  const waited = await run(open, tally);
  const wallMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  for (const connection of open) connection.close();
  return { sent: tally.latency.count, ...tally, wallMs, generatorUs: user + system, waited };
}
