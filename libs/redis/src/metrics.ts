import { Counter, Gauge } from 'prom-client';

export const connectionUp = new Gauge({
  name: 'seckill_redis_connection_up',
  help: '1 while this connection to Redis is ready for commands',
  labelNames: ['connection'],
  // Of several processes: 0 while any of them lacks it.
  aggregator: 'min',
});

export const connectionErrors = new Counter({
  name: 'seckill_redis_connection_errors_total',
  help: 'Errors of connections to Redis',
  labelNames: ['connection'],
});

export const durable = new Gauge({
  name: 'seckill_redis_durability_info',
  help: '1 for the durability that Redis had when it was last read',
  labelNames: ['level', 'may_evict'],
  // What all processes share is told once, not summed.
  aggregator: 'max',
});
