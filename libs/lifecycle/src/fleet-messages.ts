import type { Registry } from 'prom-client';

/** The figures of one process, as prom-client shows them for machines. */
export type Figures = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** What the processes of a fleet tell each other; `id` joins an answer to its question. */
export type FleetMessage =
  /** Supervisor to member: tell your figures. */
  | { readonly kind: 'fleet:figures?'; readonly id: number }
  | { readonly kind: 'fleet:figures'; readonly id: number; readonly figures: Figures }
  /** Member to supervisor: the figures of all, as text. */
  | { readonly kind: 'fleet:metrics?'; readonly id: number }
  | { readonly kind: 'fleet:metrics'; readonly id: number; readonly text: string };

/** Whether something that came over the channel is of ours; others (the cluster module's, a debugger's) use it, too. */
export function isFleetMessage(message: unknown): message is FleetMessage {
  if (typeof message !== 'object' || message === null) return false;
  const { kind, id } = message as { kind?: unknown; id?: unknown };
  return typeof kind === 'string' && kind.startsWith('fleet:') && Number.isInteger(id);
}
