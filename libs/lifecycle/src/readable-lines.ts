import { styleText } from 'node:util';
import type { DestinationStream } from 'pino';

interface Line {
  readonly level: number;
  readonly time: string;
  readonly msg: string;
  readonly context?: string;
  readonly stack?: string;
}

/** Turns pino's JSON lines into lines for people: time, level, context, message. */
export function readableLines(output: { write(text: string): unknown }): DestinationStream {
  return {
    write(json: string): void {
      const { level, time, msg, context, stack } = JSON.parse(json) as Line;
      const place = context === undefined ? '' : styleText('cyan', `[${context}] `);
      output.write(
        `${time.slice(11, 23)} ${levelWord(level)} ${place}${msg}\n${stack === undefined ? '' : `${stack}\n`}`,
      );
    },
  };
}

function levelWord(level: number): string {
  if (level >= 50) return styleText('red', level >= 60 ? 'FATAL' : 'ERROR');
  if (level >= 40) return styleText('yellow', 'WARN ');
  return level >= 30 ? 'INFO ' : styleText('dim', 'DEBUG');
}
