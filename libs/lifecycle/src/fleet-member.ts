import cluster from 'node:cluster';
import { register } from 'prom-client';
import type { Settings } from '#config';
import { finite } from './fleet-figures.js';
import { type FleetMessage, isFleetMessage } from './fleet-messages.js';
import { SharedTurn } from './shared-turn.js';

/** Two rounds of the supervisor (one may be running already), and the way there and back. */
const SUPERVISOR_ANSWER_MS = 2500;

/** The supervising process does not tell the figures of all. */
export class FleetSilentError extends Error {
  readonly code = 'FLEET_SILENT';

  constructor() {
    super(`the supervising process told no figures within ${SUPERVISOR_ANSWER_MS} ms`);
  }
}

/** Whether this process is one of several that share the port (API_PROCESSES) under a supervising one. */
export function isFleetMember(settings: Settings): boolean {
  return settings.apiProcesses > 1 && cluster.isWorker;
}

/** This process as the others of its fleet see it. */
class FleetMember {
  private asked = 0;
  private answer: { readonly id: number; readonly take: (text: string) => void } | undefined;
  private readonly turn = new SharedTurn(() => this.ask());

  /** @param orphaned called when the channel to the supervising process is gone: it has died, and nobody will send connections or a signal */
  constructor(orphaned: () => void) {
    process.on('message', (message: unknown) => {
      if (isFleetMessage(message)) this.heard(message);
    });
    const self = cluster.worker;
    self?.once('disconnect', () => {
      // Else the cluster module ends this process on the spot, with its work in hand.
      self.exitedAfterDisconnect = true;
      orphaned();
    });
  }

  /** The metrics of all processes. @throws FleetSilentError */
  metrics(): Promise<string> {
    return this.turn.ask();
  }

  private async ask(): Promise<string> {
    const id = (this.asked += 1);
    let limit: NodeJS.Timeout | undefined;
    try {
      return await new Promise((take, refuse) => {
        this.answer = { id, take };
        limit = setTimeout(() => refuse(new FleetSilentError()), SUPERVISOR_ANSWER_MS);
        send({ kind: 'fleet:metrics?', id });
      });
    } finally {
      clearTimeout(limit);
      this.answer = undefined;
    }
  }

  private heard(message: FleetMessage): void {
    if (message.kind === 'fleet:metrics' && message.id === this.answer?.id) this.answer.take(message.text);
    if (message.kind === 'fleet:figures?') void this.tell(message.id);
  }

  private async tell(id: number): Promise<void> {
    send({ kind: 'fleet:figures', id, figures: finite(await register.getMetricsAsJSON()) });
  }
}

/** A message that cannot be sent has no addressee any more: the loss of the channel is heard by itself. */
function send(message: FleetMessage): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

let member: FleetMember | undefined;

/** Makes this process answer for itself within its fleet. Once per process. */
export function joinFleet(orphaned: () => void): void {
  member ??= new FleetMember(orphaned);
}

/**
 * The metrics of this instance as Prometheus text: of this process, or, in a fleet, of all its processes together.
 * @throws FleetSilentError
 */
export function instanceMetrics(): Promise<string> {
  return member === undefined ? register.metrics() : member.metrics();
}
