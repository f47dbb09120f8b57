import type { Scenario } from '../runner.js';
import { apiScenarios } from './api.js';
import { consumerScenarios } from './consumer.js';
import { databaseScenarios } from './database.js';
import { overloadScenarios } from './overload.js';
import { recordScenarios } from './record.js';
import { redisScenarios } from './redis.js';
import { replicaScenarios } from './replica.js';

/** Every scenario, in the order of its number. */
export const scenarios: readonly Scenario[] = [
  ...apiScenarios,
  ...redisScenarios,
  ...replicaScenarios,
  ...consumerScenarios,
  ...databaseScenarios,
  ...recordScenarios,
  ...overloadScenarios,
].sort((one, other) => Number(one.id.slice(1)) - Number(other.id.slice(1)));
