import { Counter, Histogram } from 'prom-client';

/** What became of a request for a login code. */
export type CodeOutcome = 'SENT' | 'TOO_OFTEN' | 'TOO_MANY';
/** What became of an attempt to log in. */
export type LoginOutcome = 'OPENED' | 'WRONG_CODE';

const codes = new Counter({
  name: 'seckill_hmdp_codes_total',
  help: 'Login codes asked for by hmdp clients, by outcome.',
  labelNames: ['outcome'],
});
const logins = new Counter({
  name: 'seckill_hmdp_logins_total',
  help: 'Logins tried by hmdp clients, by outcome.',
  labelNames: ['outcome'],
});

export const tokenBatchSize = new Histogram({
  name: 'seckill_hmdp_token_batch_size',
  help: 'Tokens looked up in one script call.',
  buckets: [1, 2, 5, 10, 20, 50, 100, 200, 500],
});

export function countCode(outcome: CodeOutcome): void {
  codes.inc({ outcome });
}

export function countLogin(outcome: LoginOutcome): void {
  logins.inc({ outcome });
}
