import { isCanonicalId } from '#order-stream';
import type { KeySpace } from './key-space.js';
import type { AdmissionOutcome, AdmissionRequest, UnavailableReason } from './outcomes.js';
import { UnknownReplyError } from './reply.js';

/** One call of admit.lua: its keys and arguments, and where in the caller's list each decided purchase stands. */
export interface AdmissionCall {
  readonly partition: number;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly requests: readonly AdmissionRequest[];
  /** For each voucher of the call, positions in `requests`, in the script's order. */
  readonly groups: readonly (readonly number[])[];
}

const SCRIPT = 'admit.lua';
const BATCH = { decided: 0, epoch: 1, serverState: 2, refusedWrite: 3, undoRefused: 4, inconsistent: 5 } as const;
const WHOLE_BATCH_REFUSED: Readonly<Record<number, UnavailableReason>> = {
  [BATCH.epoch]: 'EPOCH',
  [BATCH.serverState]: 'SERVER_STATE',
  [BATCH.refusedWrite]: 'REFUSED_WRITE',
  [BATCH.inconsistent]: 'INCONSISTENT',
};

const NOT_PUBLISHED: AdmissionOutcome = { kind: 'NOT_PUBLISHED' };
const SOLD_OUT: AdmissionOutcome = { kind: 'SOLD_OUT' };
const OVERLOADED: AdmissionOutcome = { kind: 'OVERLOADED' };
const UNAVAILABLE: Readonly<Record<UnavailableReason, AdmissionOutcome>> = {
  EPOCH: { kind: 'UNAVAILABLE', reason: 'EPOCH' },
  INCONSISTENT: { kind: 'UNAVAILABLE', reason: 'INCONSISTENT' },
  REFUSED_WRITE: { kind: 'UNAVAILABLE', reason: 'REFUSED_WRITE' },
  NOT_SENT: { kind: 'UNAVAILABLE', reason: 'NOT_SENT' },
  SERVER_STATE: { kind: 'UNAVAILABLE', reason: 'SERVER_STATE' },
};

/** The same refusal for every purchase. */
export function refuseAll(requests: readonly AdmissionRequest[], reason: UnavailableReason): AdmissionOutcome[] {
  return new Array<AdmissionOutcome>(requests.length).fill(UNAVAILABLE[reason]);
}

/** OUTCOME_UNKNOWN for every purchase, each with its own candidate. */
export function unknownAll(requests: readonly AdmissionRequest[]): AdmissionOutcome[] {
  return requests.map(({ orderId }) => ({ kind: 'OUTCOME_UNKNOWN', candidateOrderId: orderId }));
}

/**
 * Groups the purchases by voucher, their order within a voucher kept, and lays out KEYS and ARGV. `countedBacklog`: the backlog was counted from outside
 * of late, and its key exists. Throws a TypeError for an id that is not canonical.
 */
export function encodeAdmission(
  keySpace: KeySpace,
  partition: number,
  requests: readonly AdmissionRequest[],
  maxBacklog: number,
  countedBacklog: boolean,
): AdmissionCall {
  const groups = new Map<string, number[]>();
  for (let at = 0; at < requests.length; at++) {
    const { voucherId, userId, orderId } = requests[at] as AdmissionRequest;
    if (!isCanonicalId(userId) || !isCanonicalId(orderId))
      throw new TypeError('a purchase carries an id that is not canonical');
    const group = groups.get(voucherId);
    if (group === undefined) groups.set(voucherId, [at]);
    else group.push(at);
  }
  const keys = [keySpace.epoch(partition), keySpace.stream(partition)];
  const args = [keySpace.group, String(maxBacklog), String(groups.size)];
  for (const [voucherId, group] of groups) {
    keys.push(
      keySpace.sale(partition, voucherId),
      keySpace.stock(partition, voucherId),
      keySpace.marks(partition, voucherId),
    );
    args.push(voucherId, String(group.length));
    for (const at of group) args.push((requests[at] as AdmissionRequest).userId);
    for (const at of group) args.push((requests[at] as AdmissionRequest).orderId);
  }
  if (countedBacklog) keys.push(keySpace.backlog(partition));
  return { partition, keys, args, requests, groups: [...groups.values()] };
}

/** The outcomes in the order of `call.requests`. Throws UnknownReplyError for a reply outside the script's contract. */
export function decodeAdmission(call: AdmissionCall, reply: unknown): AdmissionOutcome[] {
  if (!Array.isArray(reply)) throw new UnknownReplyError(SCRIPT, reply);
  const parts = reply as readonly unknown[];
  const batch = parts[0];
  if (batch === BATCH.undoRefused) return unknownAll(call.requests);
  const refused = typeof batch === 'number' ? WHOLE_BATCH_REFUSED[batch] : undefined;
  if (refused !== undefined) return refuseAll(call.requests, refused);
  if (batch !== BATCH.decided || parts.length !== 1 + 2 * call.groups.length + call.requests.length) {
    throw new UnknownReplyError(SCRIPT, reply);
  }
  const outcomes = new Array<AdmissionOutcome>(call.requests.length);
  let at = 1;
  for (const group of call.groups) {
    const beginMs = parts[at++];
    const endMs = parts[at++];
    for (const position of group) {
      const request = call.requests[position] as AdmissionRequest;
      outcomes[position] = decodeOutcome(parts[at++], request, beginMs, endMs);
    }
  }
  return outcomes;
}

function decodeOutcome(part: unknown, request: AdmissionRequest, beginMs: unknown, endMs: unknown): AdmissionOutcome {
  switch (part) {
    case 0:
      return { kind: 'ACCEPTED', orderId: request.orderId };
    case 1:
      return NOT_PUBLISHED;
    case 2:
      return { kind: 'NOT_STARTED', beginMs: time(beginMs) };
    case 3:
      return { kind: 'ENDED', endMs: time(endMs) };
    case 4:
      return SOLD_OUT;
    case 5:
      return OVERLOADED;
    case 6:
      return UNAVAILABLE.EPOCH;
    case 7:
      return UNAVAILABLE.INCONSISTENT;
    case 8:
      return UNAVAILABLE.SERVER_STATE;
    default:
      if (typeof part !== 'string') throw new UnknownReplyError(SCRIPT, part);
      // A mark that is no id was not written by us: no answer that names an order.
      return isCanonicalId(part) ? { kind: 'DUPLICATE', orderId: part } : UNAVAILABLE.INCONSISTENT;
  }
}

function time(part: unknown): number {
  if (typeof part !== 'number') throw new UnknownReplyError(SCRIPT, part);
  return part;
}

/** What stands where no replica confirmed the call in time: answers that name an order become OUTCOME_UNKNOWN, refusals stay. */
export function withoutConfirmation(outcomes: readonly AdmissionOutcome[]): AdmissionOutcome[] {
  return outcomes.map((outcome) =>
    outcome.kind === 'ACCEPTED' || outcome.kind === 'DUPLICATE'
      ? { kind: 'OUTCOME_UNKNOWN', candidateOrderId: outcome.orderId }
      : outcome,
  );
}
