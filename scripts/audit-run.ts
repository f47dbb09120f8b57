import { NestFactory } from '@nestjs/core';
import { ConfigModule, type Settings } from '#config';
import { Database } from '#database';
import { ReconciliationModule, ReconciliationService } from '#reconciliation';
import { RedisConnections } from '#redis';
import { OrderLog } from '#sale-register';
import { auditExitCode, auditLines, type AuditResult } from './audit-report.js';

const CONNECT_LIMIT_MS = 10_000;
/** An audit of the largest system takes minutes; what hangs ends here. */
const AUDIT_LIMIT_MS = 3_600_000;

export interface AuditOptions {
  readonly repair: boolean;
  readonly json: boolean;
  readonly colour: boolean;
  /** How long the stores may take to be reached; 10 s where absent. */
  readonly connectLimitMs?: number;
}

/** 0: the stores agree. 1: they differ. 2: it could not be seen. */
export type AuditExitCode = 0 | 1 | 2;

/**
 * Looks at a live system, repairs where asked, and writes what it saw with `write`, line by line. Starts no server, no consumer and no periodic
 * work. Never throws for trouble of the stores: that is exit code 2 with the reason.
 */
export async function runAudit(
  settings: Settings,
  options: AuditOptions,
  write: (line: string) => void,
): Promise<AuditExitCode> {
  const context = await NestFactory.createApplicationContext(
    { module: AuditModule, imports: [ConfigModule.forRoot(settings), ReconciliationModule] },
    { logger: false, abortOnError: false },
  );
  try {
    const connections = context.get(RedisConnections, { strict: false });
    const { connectLimitMs = CONNECT_LIMIT_MS } = options;
    await context.get(Database, { strict: false }).whenReady(connectLimitMs);
    if (!(await connections.whenReady(connectLimitMs))) throw new Error('Redis cannot be reached');
    const result = await audit(
      context.get(ReconciliationService, { strict: false }),
      context.get(OrderLog, { strict: false }),
      options,
    );
    if (options.json) write(JSON.stringify({ agrees: auditExitCode(result) === 0, ...result }));
    else for (const line of auditLines(result, options)) write(line);
    return auditExitCode(result);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    write(options.json ? JSON.stringify({ error: reason }) : `✗ the audit could not look: ${reason}`);
    return 2;
  } finally {
    await context.close();
  }
}

async function audit(service: ReconciliationService, log: OrderLog, { repair }: AuditOptions): Promise<AuditResult> {
  const signal = AbortSignal.timeout(AUDIT_LIMIT_MS);
  const look = { signal };
  const pass = repair
    ? await service.pass({ actor: 'audit', ...look })
    : { before: await service.inspect(look), repairs: [] };
  // The repairs looked again at what they touched; what counts is a look at everything.
  const after = pass.repairs.length > 0 ? await service.inspect(look) : pass.before;
  const streams = [];
  for (const partition of await service.partitions()) {
    const { length, pending, deadLetters } = await log.stats(partition);
    streams.push({ partition, length, pending, deadLetters });
  }
  return { before: pass.before, repairs: pass.repairs, after, streams };
}

class AuditModule {}
