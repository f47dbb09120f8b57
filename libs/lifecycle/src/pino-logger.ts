import type { LoggerService } from '@nestjs/common';
import { type DestinationStream, type Level, type Logger, pino } from 'pino';
import { readableLines } from './readable-lines.js';

/** The framework's own lines about modules and routes, the same at every start. */
const FRAMEWORK_CONTEXTS = new Set([
  'NestFactory',
  'InstanceLoader',
  'RoutesResolver',
  'RouterExplorer',
  'NestApplication',
]);

/** Nest's logger on pino: one JSON object per line, or readable lines where a person watches. Contexts become `context`, stacks `stack`. */
export class PinoLogger implements LoggerService {
  private readonly pino: Logger;

  constructor(level: Level, destination: DestinationStream = standardOutput()) {
    this.pino = pino({ level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  }

  log(message: unknown, ...parts: unknown[]): void {
    this.write(FRAMEWORK_CONTEXTS.has(String(parts.at(-1))) ? 'debug' : 'info', message, parts);
  }
  warn(message: unknown, ...parts: unknown[]): void {
    this.write('warn', message, parts);
  }
  debug(message: unknown, ...parts: unknown[]): void {
    this.write('debug', message, parts);
  }
  verbose(message: unknown, ...parts: unknown[]): void {
    this.write('trace', message, parts);
  }
  fatal(message: unknown, ...parts: unknown[]): void {
    this.write('fatal', message, parts);
  }
  /** Nest passes (message, stack, context), (message, context) or (error, ...). */
  error(message: unknown, ...parts: unknown[]): void {
    const stack = parts.length > 1 && typeof parts[0] === 'string' ? parts.shift() : undefined;
    this.write('error', message, parts, stack);
  }

  private write(level: Level, message: unknown, parts: unknown[], stack?: unknown): void {
    const context = typeof parts.at(-1) === 'string' ? parts.pop() : undefined;
    const error = message instanceof Error ? message : undefined;
    const text = error?.message ?? (typeof message === 'string' ? message : JSON.stringify(message));
    const trace = stack ?? error?.stack;
    this.pino[level](
      { ...(context === undefined ? {} : { context }), ...(trace === undefined ? {} : { stack: trace }) },
      [text, ...parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))].join(' '),
    );
  }
}

function standardOutput(): DestinationStream {
  if (process.stdout.isTTY) return readableLines(process.stdout);
  const destination = pino.destination({ fd: 1, sync: true });
  // A reader of our output that went away is no reason to stop.
  destination.on('error', () => undefined);
  return destination;
}
