import { parseArgs } from 'node:util';

/** One rush, as asked for. */
export interface RushOptions {
  readonly buyers: number;
  /** Units on sale. */
  readonly stock: number;
  /** Connections in all; under an open load the most that may be open at once. */
  readonly connections: number;
  /** Purchases per second of an open load; undefined: a closed load (each connection sends its next when the answer is there). */
  readonly rate: number | undefined;
  /** Services to rush at; empty: the rush starts one itself. */
  readonly urls: readonly string[];
  /** API processes of the service that the rush starts itself. */
  readonly processes: number;
  /**
   * So often one process of that service is killed (SIGKILL), API processes and as many workers in turn, and started again as a supervisor would;
   * undefined: nobody is killed, and the API processes store the orders themselves.
   */
  readonly killEveryMs: number | undefined;
  /** How often a buyer sends his purchase at most, until he hears an answer that is no 503. */
  readonly tries: number;
  /** How long the storing may take after the last answer. */
  readonly settleMs: number;
  readonly jsonFile: string | undefined;
  readonly quiet: boolean;
}

export type ParsedOptions =
  | { readonly kind: 'RUN'; readonly options: RushOptions }
  | { readonly kind: 'HELP' }
  | { readonly kind: 'BAD'; readonly problems: readonly string[] };

export const USAGE = `npm run rush -- [--buyers 20000] [--stock 500] [--connections 128]
  Sends a crowd at a sale and ends in a verdict on the promises. Exit code 0: all kept, 1: one is broken, 2: it could not run.
  --buyers N       buyers, each with a token of his own (default 20000)
  --stock N        units on sale (default 500)
  --connections N  connections in all (default 128; with --rate 1024)
  --rate N         open load: N purchases a second, whatever the answers do; latency counts from the intended time
  --processes N    API processes of the service that the rush starts itself (default 1)
  --kill-every S   kills one of them with SIGKILL every S seconds, in turn with as many workers beside them, and starts it again
  --url URL        a running service instead (again for each of its processes); tokens from AUTH_JWT_SECRET or .data/jwt-secret; with DATABASE_URL
                   and REDIS_URL the stores are looked at too
  --tries N        how often a buyer asks at most while the answer is 503 or none (default 10)
  --settle S       seconds within which the accepted orders must be stored (default 30)
  --json FILE      writes the figures there
  --quiet          only the verdict
`;

const NUMBERS = {
  buyers: { most: 5_000_000, default: 20_000 },
  stock: { most: 10_000_000, default: 500 },
  connections: { most: 20_000, default: undefined },
  rate: { most: 1_000_000, default: undefined },
  processes: { most: 64, default: 1 },
  tries: { most: 1_000, default: 10 },
  settle: { most: 3_600, default: 30 },
  'kill-every': { most: 3_600, default: undefined },
} as const;
type NumberName = keyof typeof NUMBERS;

/** Reads the command line; names every fault at once. */
export function parseRushOptions(args: readonly string[]): ParsedOptions {
  let values;
  try {
    const text = { type: 'string' } as const;
    const numbers = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, text])) as Record<
      NumberName,
      typeof text
    >;
    ({ values } = parseArgs({
      args: [...args],
      options: {
        ...numbers,
        url: { type: 'string', multiple: true },
        json: text,
        quiet: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }));
  } catch (error) {
    return { kind: 'BAD', problems: [error instanceof Error ? error.message : String(error)] };
  }
  if (values.help === true) return { kind: 'HELP' };
  const problems: string[] = [];
  const number = (name: NumberName): number | undefined => {
    const { most, default: usual } = NUMBERS[name];
    const given = values[name];
    if (given === undefined) return usual;
    const value = /^[1-9]\d{0,9}$/.test(given) ? Number(given) : NaN;
    if (value <= most) return value;
    problems.push(`--${name} is "${given}"; allowed are whole numbers 1..${most}`);
    return usual;
  };
  const urls = (values.url ?? []).map((url) => checkedUrl(url, problems));
  const rate = number('rate');
  const options: RushOptions = {
    buyers: number('buyers') ?? 0,
    stock: number('stock') ?? 0,
    connections: number('connections') ?? (rate === undefined ? 128 : 1_024),
    rate,
    urls,
    processes: number('processes') ?? 1,
    killEveryMs: seconds(number('kill-every')),
    tries: number('tries') ?? 1,
    settleMs: (number('settle') ?? 0) * 1_000,
    jsonFile: values.json,
    quiet: values.quiet === true,
  };
  if (urls.length > 0 && values.processes !== undefined)
    problems.push('--processes is for a service that the rush starts itself; give --url once for each process instead');
  if (urls.length > 0 && values['kill-every'] !== undefined)
    problems.push('--kill-every is for a service that the rush starts itself');
  return problems.length > 0 ? { kind: 'BAD', problems } : { kind: 'RUN', options };
}

const seconds = (value: number | undefined): number | undefined => (value === undefined ? undefined : value * 1_000);

function checkedUrl(text: string, problems: string[]): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.protocol !== 'http:' || url.pathname !== '/' || url.search !== '')
    problems.push(`--url is "${text}"; needed is http://host:port`);
  return url?.origin ?? text;
}
