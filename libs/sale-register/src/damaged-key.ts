import { classifyRedisError, guardRedis, RedisUnavailableError } from '#redis';

/** True where the server says that a key holds another type: another hand replaced it, and it holds nothing of ours. */
export function isOtherType(error: unknown): boolean {
  return classifyRedisError(error).state === 'WRONGTYPE';
}

/**
 * As guardRedis; a key of another type is passing trouble as well: the reconciliation drops such a key and builds it anew. So whoever asks
 * hears "unavailable", and no defect.
 */
export async function guardKeys<T>(call: Promise<T>): Promise<T> {
  try {
    return await guardRedis(call);
  } catch (error) {
    if (error instanceof RedisUnavailableError || !isOtherType(error)) throw error;
    throw new RedisUnavailableError({ ...classifyRedisError(error), passing: true }, error);
  }
}
