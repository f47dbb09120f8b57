import { styleText } from 'node:util';
import {
  countByKind,
  explainFinding,
  type Finding,
  type Inspection,
  type Repair,
  type VoucherReport,
} from '#reconciliation';

/** One partition's stream, as the audit shows it: nothing here is a difference by itself. */
export interface StreamLine {
  readonly partition: number;
  readonly length: number;
  readonly pending: number;
  readonly deadLetters: number;
}

/** Everything one audit learned. */
export interface AuditResult {
  readonly before: Inspection;
  readonly repairs: readonly Repair[];
  /** The look that counts: the first one, or the one after the repairs. */
  readonly after: Inspection;
  readonly streams: readonly StreamLine[];
}

export interface ReportOptions {
  readonly repair: boolean;
  readonly colour: boolean;
}

/** The audit in lines for people: a tick or each difference per voucher, then totals. */
export function auditLines(result: AuditResult, options: ReportOptions): string[] {
  const lines = lookLines(result.before, options);
  if (result.repairs.length > 0) {
    lines.push('', 'Repairs');
    for (const { finding, result: outcome } of result.repairs) {
      const done = outcome === 'REPAIRED';
      lines.push(
        `  ${mark(done, options)} ${subject(finding)}: ${finding.kind} ${outcome.toLowerCase().replace('_', ' ')}`,
      );
    }
    lines.push('', 'After the repairs', ...lookLines(result.after, options));
  }
  lines.push('');
  for (const { partition, length, pending, deadLetters } of result.streams) {
    lines.push(
      `partition ${partition}: ${length} entries in the stream, ${pending} pending, ${deadLetters} dead letters`,
    );
  }
  lines.push(totals(result, options));
  return lines;
}

/** 0: the stores agree. 1: they differ, or not everything could be seen. */
export function auditExitCode({ after }: AuditResult): 0 | 1 {
  return after.findings.length === 0 && after.complete ? 0 : 1;
}

function lookLines(inspection: Inspection, options: ReportOptions): string[] {
  const lines: string[] = [];
  for (const finding of inspection.partitions) lines.push(...differenceLines(finding, options));
  for (const voucher of inspection.vouchers) lines.push(...voucherLines(voucher, options));
  if (inspection.vouchers.length === 0 && inspection.partitions.length === 0) lines.push('no voucher is stored yet');
  return lines;
}

function voucherLines(voucher: VoucherReport, options: ReportOptions): string[] {
  const { voucherId, units, stock, marks, activeOrders, onTheWay, findings, complete } = voucher;
  const numbers =
    `units ${units}, left ${stock ?? '?'}, marked buyers ${marks ?? '?'}, ` +
    `orders ${activeOrders}, buyers in the stream ${onTheWay}`;
  const lines = [`${mark(findings.length === 0 && complete, options)} voucher ${voucherId}: ${numbers}`];
  for (const finding of findings) lines.push(...differenceLines(finding, options).map((line) => `    ${line}`));
  if (!complete)
    lines.push('    more buyers look wrong than one look follows up: run the audit again after the repair');
  return lines;
}

function differenceLines(finding: Finding, { repair, colour }: ReportOptions): string[] {
  const { meaning, repair: cure } = explainFinding(finding);
  const named = `${finding.kind} ${subject(finding)}: ${meaning}`;
  const lines = [colour ? styleText('yellow', named) : named];
  if (!repair) lines.push(`  --repair ${cure}`);
  return lines;
}

function subject(finding: Finding): string {
  if (!('voucherId' in finding)) return `partition ${finding.partition}`;
  const buyer = 'userId' in finding ? `, user ${finding.userId}, order ${finding.orderId}` : '';
  return `voucher ${finding.voucherId}${buyer}`;
}

function totals({ before, after, repairs }: AuditResult, options: ReportOptions): string {
  const vouchers = `${before.vouchers.length} voucher${before.vouchers.length === 1 ? '' : 's'}`;
  const time = `${(before.durationMs / 1_000).toFixed(1)} s`;
  const kinds = [...countByKind(after.findings)].map(([kind, count]) => `${count} ${kind}`).join(', ');
  const repaired = repairs.filter(({ result }) => result === 'REPAIRED').length;
  const mended = repairs.length > 0 ? `, ${repaired} repaired` : '';
  const verdict = after.findings.length === 0 ? 'Redis, stream and database agree' : `differences: ${kinds}`;
  return `${mark(after.findings.length === 0 && after.complete, options)} ${vouchers} in ${time}${mended}: ${verdict}`;
}

function mark(good: boolean, { colour }: ReportOptions): string {
  if (!colour) return good ? '✓' : '✗';
  return good ? styleText('green', '✓') : styleText('red', '✗');
}
