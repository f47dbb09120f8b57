export { DurabilityProbe, type Durability, type DurabilityLevel } from './durability-probe.js';
export { LockService, type HeldLock } from './lock.js';
export { type LuaScript, loadScript, runScript } from './lua-script.js';
export { RedisConnections, type RedisConnection } from './redis-connections.js';
export { classifyRedisError, guardRedis, RedisUnavailableError, type RedisErrorClass } from './redis-errors.js';
export { RedisModule } from './redis.module.js';
