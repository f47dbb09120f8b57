import { Counter } from 'prom-client';

/** Tokens whose signature was checked; remembered ones do not count. */
const tokenChecks = new Counter({
  name: 'seckill_token_checks_total',
  help: 'Bearer tokens whose signature and claims were checked, by result; remembered tokens are not counted.',
  labelNames: ['result'] as const,
});

/** Counts one check; the children are looked up once, not for each token. */
export const validTokens = tokenChecks.labels({ result: 'valid' });
export const invalidTokens = tokenChecks.labels({ result: 'invalid' });
