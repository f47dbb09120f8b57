import type { FastifyReply, FastifyRequest } from 'fastify';
import { formatIsoTime, sendProblem } from '#http';
import type { PurchaseOutcome } from './admission/admission.service.js';

/** Where an order is read. */
export function orderPath(voucherId: string, orderId: string): string {
  return `/v1/vouchers/${voucherId}/orders/${orderId}`;
}

/** Answers a purchase. Refusals are the common case: no error object is made for them. */
export function answerPurchase(
  request: FastifyRequest,
  reply: FastifyReply,
  voucherId: string,
  outcome: PurchaseOutcome,
): void {
  switch (outcome.kind) {
    case 'ACCEPTED':
      return accepted(reply, voucherId, outcome.orderId);
    case 'SOLD_OUT':
    case 'VOUCHER_NOT_FOUND':
    case 'OVERLOADED':
    case 'UNAVAILABLE':
      return sendProblem(request, reply, outcome.kind);
    case 'DUPLICATE':
      return sendProblem(request, reply, 'DUPLICATE_ORDER', { orderId: outcome.orderId });
    case 'NOT_STARTED':
      return sendProblem(request, reply, 'NOT_STARTED', { beginTime: formatIsoTime(outcome.beginMs) });
    case 'ENDED':
      return sendProblem(request, reply, 'ENDED', { endTime: formatIsoTime(outcome.endMs) });
    case 'OUTCOME_UNKNOWN':
      return sendProblem(request, reply, 'OUTCOME_UNKNOWN', { candidateOrderId: outcome.candidateOrderId });
  }
}

function accepted(reply: FastifyReply, voucherId: string, orderId: string): void {
  reply
    .code(202)
    .header('location', orderPath(voucherId, orderId))
    .header('cache-control', 'no-store')
    .header('content-type', 'application/json; charset=utf-8')
    // Both ids are canonical decimals: nothing in them needs escaping.
    .send(`{"orderId":"${orderId}","voucherId":"${voucherId}","status":"QUEUED"}`);
}
