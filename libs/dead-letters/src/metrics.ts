import { Counter } from 'prom-client';

/** Letters taken out of the dead letters, by how. */
export const settledLetters = new Counter({
  name: 'seckill_dead_letters_settled_total',
  help: 'Dead letters that an administrator had tried again or given up, by what became of them.',
  labelNames: ['outcome'] as const,
});
