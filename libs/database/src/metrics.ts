import { Counter, Gauge, Histogram } from 'prom-client';

/** What the gauges ask of each open database of the process. */
export interface DatabaseGauges {
  isReady(): boolean;
  openConnections(): number;
}

const databases = new Set<DatabaseGauges>();

/** Adds a database to the gauges; answers how to take it out again. */
export function observeDatabase(database: DatabaseGauges): () => void {
  databases.add(database);
  return () => databases.delete(database);
}

new Gauge({
  name: 'seckill_database_ready',
  help: '1 while the database answers, 0 while it is away',
  // Of several processes: 0 while it is away for any of them.
  aggregator: 'min',
  collect() {
    this.set([...databases].every((database) => database.isReady()) ? 1 : 0);
  },
});

new Gauge({
  name: 'seckill_database_connections',
  help: 'Open connections of the pool',
  collect() {
    this.set([...databases].reduce((sum, database) => sum + database.openConnections(), 0));
  },
});

export const transactionsTotal = new Counter({
  name: 'seckill_database_transactions_total',
  help: 'Transactions by outcome: committed, or why not',
  labelNames: ['outcome'] as const,
});

export const transactionSeconds = new Histogram({
  name: 'seckill_database_transaction_duration_seconds',
  help: 'From asking for a connection to the answer to COMMIT',
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
});

export const connectAttemptsTotal = new Counter({
  name: 'seckill_database_connect_attempts_total',
  help: 'Attempts of the connector to reach the database, by outcome',
  labelNames: ['outcome'] as const,
});
