export { FleetSilentError, instanceMetrics, isFleetMember } from './fleet-member.js';
export { PinoLogger } from './pino-logger.js';
export { superviseFleet } from './process-fleet.js';
export { type Assemble, type Assembled, run } from './run.js';
