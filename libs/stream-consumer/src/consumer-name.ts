import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

/** A consumer name that no other running loop has: host, process id and 64 random bits. Without characters that could break a line or a name. */
export function uniqueConsumerName(): string {
  return `${hostname().replaceAll(/[^A-Za-z0-9.-]/g, '-')}-${process.pid}-${randomBytes(8).toString('hex')}`;
}
