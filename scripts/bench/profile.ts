/** A CPU profile as V8 writes it, as far as it is read here. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Where time goes, by the file that a function stands in; the first that fits counts. */
const PARTS: readonly (readonly [part: string, urls: RegExp])[] = [
  ['who is asking (libs/auth, fast-jwt)', /libs\/auth\/|node_modules\/(fast-jwt|lru-cache|jose)\/|internal\/crypto/],
  ['admission: batch, order id, deadline (libs/voucher-order)', /libs\/voucher-order\//],
  [
    'the script call: arguments and outcomes (libs/sale-register, libs/redis, libs/order-stream)',
    /libs\/(sale-register|redis|order-stream)\//,
  ],
  [
    'Redis driver (ioredis)',
    /node_modules\/(ioredis|redis-parser|denque|redis-errors|standard-as-callback|cluster-key-slot|@ioredis)/,
  ],
  ['request id, hooks, answer (libs/http)', /libs\/http\//],
  ['Nest: pipes, parameters, handlers', /node_modules\/(@nestjs|rxjs|reflect-metadata)\//],
  [
    'Fastify: routing, reply',
    /node_modules\/(@?fastify|find-my-way|avvio|light-my-request|@fastify|secure-json-parse|fast-json|process-warning|toad-cache)/,
  ],
  ['metrics (prom-client)', /node_modules\/prom-client\//],
  ['logging (pino)', /node_modules\/(pino|sonic-boom|thread-stream|on-exit-leak-free)/],
  ['Node: HTTP server', /node:(_http|internal\/http|http)/],
  [
    'Node: sockets and streams',
    /node:(net|internal\/(streams?|stream_base|net|js_stream)|stream|buffer|internal\/buffer|string_decoder)/,
  ],
  [
    'Node: timers, ticks, promises',
    /node:(internal\/(process|timers|async|promise|util|event)|timers|events|async_hooks|diagnostics_channel)/,
  ],
  ['other rooms (watches, consumer, health)', /libs\//],
];
const GARBAGE = 'garbage collection';
const NATIVE = 'native code: HTTP parser, event loop, reading sockets';
const WRITE = 'native code: writing to sockets';
const SOCKET_WRITE = /^write(v|Latin1String|Utf8String|Buffer|AsciiString)$/;
const OTHER = 'other';
const IDLE = '(idle)';
/** The profiler's own start and end. */
const PROFILER = 'node:inspector';

/** The shares of the time that was not idle, largest first. */
export function shares(profile: CpuProfile): { readonly part: string; readonly share: number }[] {
  const partOf = partsByNode(profile);
  const time = new Map<string, number>();
  let whole = 0;
  profile.samples.forEach((node, at) => {
    const part = partOf.get(node);
    const us = profile.timeDeltas[at] ?? 0;
    if (part === undefined || us < 0) return;
    time.set(part, (time.get(part) ?? 0) + us);
    whole += us;
  });
  return [...time].map(([part, us]) => ({ part, share: us / whole })).sort((a, b) => b.share - a.share);
}

/** Each node's part; built-in functions without a file count for who called them. Idle nodes have none, nor has the profiler. */
function partsByNode({ nodes }: CpuProfile): Map<number, string> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parts = new Map<number, string>();
  const visit = (id: number, callersPart: string): void => {
    const node = byId.get(id);
    if (node === undefined) return;
    const { functionName, url } = node.callFrame;
    if (functionName === IDLE || url === PROFILER) return;
    const part = partOfFrame(functionName, url) ?? callersPart;
    parts.set(id, part);
    for (const child of node.children ?? []) visit(child, part);
  };
  const root = nodes[0];
  // What is called by nothing is called by the event loop.
  if (root !== undefined) visit(root.id, NATIVE);
  return parts;
}

function partOfFrame(functionName: string, url: string): string | undefined {
  if (functionName === '(garbage collector)') return GARBAGE;
  if (functionName === '(program)') return NATIVE;
  if (url === '') return SOCKET_WRITE.test(functionName) ? WRITE : undefined;
  return PARTS.find(([, urls]) => urls.test(url))?.[0] ?? OTHER;
}

/** How one operation spends its microseconds, as a Markdown table. */
export function profileTable(profile: CpuProfile, usPerOperation: number): string[] {
  return [
    '| part | share | µs |',
    '|---|---|---|',
    ...shares(profile).map(
      ({ part, share }) => `| ${part} | ${(share * 100).toFixed(1)} % | ${(share * usPerOperation).toFixed(1)} |`,
    ),
    `| **all** | | **${usPerOperation.toFixed(1)}** |`,
  ];
}
