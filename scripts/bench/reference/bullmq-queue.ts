import { given } from './child.js';

export const BULLMQ_QUEUE = 'peer-orders';

/** BullMQ makes its own clients; blocking ones must never give up. */
export function bullmqConnection(): { host: string; port: number; maxRetriesPerRequest: null } {
  const { hostname, port } = new URL(given('REDIS_URL'));
  return { host: hostname, port: Number(port), maxRetriesPerRequest: null };
}
