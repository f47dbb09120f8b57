import { Logger } from '@nestjs/common';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { PinoLogger } from './pino-logger.js';
import { readableLines } from './readable-lines.js';

function recording(level: 'info' | 'debug' = 'info'): { logger: PinoLogger; lines: () => Record<string, unknown>[] } {
  const written: string[] = [];
  const logger = new PinoLogger(level, { write: (line: string) => void written.push(line) });
  return { logger, lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

describe('the logger', () => {
  it('writes one JSON object per line, with level, time, context and message', () => {
    const { logger, lines } = recording();
    logger.log('stored 3', 'StreamConsumer');
    logger.warn('slow', 'Database');
    expect(lines()).toEqual([
      {
        level: 30,
        time: expect.stringMatching(/Z$/) as string,
        pid: process.pid,
        context: 'StreamConsumer',
        msg: 'stored 3',
      },
      { level: 40, time: expect.any(String) as string, pid: process.pid, context: 'Database', msg: 'slow' },
    ]);
  });

  it('keeps an error’s stack, given as Nest gives it or as an error', () => {
    const { logger, lines } = recording();
    logger.error('broken', 'Error: broken\n    at place', 'Room');
    logger.error(new Error('whole'), 'Room');
    logger.error('words only', 'Room');
    expect(lines()).toMatchObject([
      { msg: 'broken', stack: 'Error: broken\n    at place', context: 'Room' },
      { msg: 'whole', stack: expect.stringContaining('pino-logger.spec') as string, context: 'Room' },
      { msg: 'words only', context: 'Room' },
    ]);
    expect(lines()[2]).not.toHaveProperty('stack');
  });

  it('is what Nest’s own Logger writes to, with the class as context', () => {
    const { logger, lines } = recording();
    Logger.overrideLogger(logger);
    try {
      new Logger('AdmissionService').error('odd', 'Error: odd\n    at here');
      new Logger('AdmissionService').log({ a: 1 });
    } finally {
      Logger.overrideLogger(false);
    }
    expect(lines()).toMatchObject([
      { context: 'AdmissionService', msg: 'odd', stack: 'Error: odd\n    at here' },
      { context: 'AdmissionService', msg: '{"a":1}' },
    ]);
  });

  it('holds its level, and takes the framework’s lines about modules and routes for detail', () => {
    const { logger, lines } = recording();
    logger.debug('detail', 'Room');
    logger.verbose('more detail', 'Room');
    logger.log('RedisModule dependencies initialized', 'InstanceLoader');
    expect(lines()).toEqual([]);
    const detailed = recording('debug');
    detailed.logger.log('Mapped {/metrics, GET} route', 'RouterExplorer');
    expect(detailed.lines()).toMatchObject([{ level: 20 }]);
  });
});

it('a person at a terminal reads time, level, context and message', () => {
  let text = '';
  const logger = new PinoLogger('info', readableLines({ write: (line: string) => (text += line) }));
  logger.log('serving on http://127.0.0.1:3000', 'Process');
  logger.error('broken', 'Error: broken\n    at place', 'Room');
  expect(stripVTControlCharacters(text)).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} INFO {2}\[Process\] serving on http:\/\/127.0.0.1:3000\n\S+ ERROR \[Room\] broken\nError: broken\n {4}at place\n$/,
  );
});
