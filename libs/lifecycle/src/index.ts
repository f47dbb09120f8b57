export { PinoLogger } from './pino-logger.js';
export { type Assemble, type Assembled, run } from './run.js';
