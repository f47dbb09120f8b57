import { Module } from '@nestjs/common';
import { DurabilityProbe } from './durability-probe.js';
import { LockService } from './lock.js';
import { RedisConnections } from './redis-connections.js';

/** Everything that speaks to Redis. Needs the global SETTINGS of ConfigModule. */
@Module({
  providers: [RedisConnections, LockService, DurabilityProbe],
  exports: [RedisConnections, LockService, DurabilityProbe],
})
export class RedisModule {}
