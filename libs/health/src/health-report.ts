/** `degraded`: works, but somebody should look. `down`: does not do what the question is about. */
export type HealthStatus = 'ok' | 'degraded' | 'down';

/** One part of a report: its status, why, and numbers that help. */
export interface HealthPart {
  readonly status: HealthStatus;
  readonly reason?: string;
  readonly [fact: string]: unknown;
}

export interface HealthReport {
  readonly status: HealthStatus;
  readonly parts: Readonly<Record<string, HealthPart>>;
}

const WORST_FIRST: readonly HealthStatus[] = ['down', 'degraded', 'ok'];

/** The worst of the statuses; `ok` where there is none. */
export function worst(statuses: readonly HealthStatus[]): HealthStatus {
  return WORST_FIRST.find((status) => statuses.includes(status)) ?? 'ok';
}

/** A report whose status is that of its worst part. */
export function healthReport(parts: Readonly<Record<string, HealthPart>>): HealthReport {
  return { status: worst(Object.values(parts).map(({ status }) => status)), parts };
}

/** The same part with `down` softened: it is reported, and does not decide. */
export function atMostDegraded(part: HealthPart): HealthPart {
  return part.status === 'down' ? { ...part, status: 'degraded' } : part;
}
