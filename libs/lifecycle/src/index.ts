export { PinoLogger } from './pino-logger.js';
export { type Assembled, run } from './run.js';
