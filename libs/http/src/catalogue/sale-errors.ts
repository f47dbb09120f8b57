import type { CatalogueEntry } from './catalogue-entry.js';

/** Refusals and trouble of purchases, orders and vouchers. */
export const SALE_ERRORS = {
  VOUCHER_NOT_FOUND: {
    status: 404,
    title: { en: 'Voucher not found', zh: '优惠券不存在' },
    detail: { en: 'There is no voucher with this id.', zh: '优惠券不存在。' },
    cause: 'No voucher with the id of the path is stored.',
    remedy: 'Look the voucher up with GET /v1/vouchers?shopId=... and use its voucherId.',
  },
  ORDER_NOT_FOUND: {
    status: 404,
    title: { en: 'Order not found', zh: '订单不存在' },
    detail: { en: 'You have no order with this id for this voucher.', zh: '订单不存在。' },
    cause: 'The id is unknown, belongs to another voucher, or the order is another buyer’s.',
    remedy: 'Use the orderId and the voucherId of the purchase’s answer, and the token of the same buyer.',
  },
  DEAD_LETTER_NOT_FOUND: {
    status: 404,
    title: { en: 'Dead letter not found', zh: '死信不存在' },
    detail: { en: 'There is no dead letter with this id.', zh: '死信不存在。' },
    cause: 'It was redriven or discarded before, or the id was never given out.',
    remedy: 'List the dead letters again with GET /v1/admin/dead-letters.',
  },
  DEAD_LETTER_NOT_REDRIVABLE: {
    status: 409,
    title: { en: 'Dead letter cannot be tried again', zh: '死信无法重试' },
    detail: {
      en: 'This dead letter holds no order that could be stored; discard it.',
      zh: '该死信不含可处理的订单,请丢弃。',
    },
    cause:
      'Its fields are no order, its order id belongs to another order, or its buyer’s mark no longer holds the order, so that no unit stands behind it.',
    remedy: 'Discard it with POST /v1/admin/dead-letters/<id>/discard.',
  },
  NOT_STARTED: {
    status: 409,
    title: { en: 'Sale not started', zh: '秒杀尚未开始' },
    detail: { en: 'The sale has not started yet; beginTime says when it does.', zh: '秒杀尚未开始。' },
    cause: 'The purchase arrived before the begin of the sale, by the clock of the register.',
    remedy:
      'Wait until beginTime, then buy again. The serverTime of GET /v1/vouchers/{voucherId} shows how far your clock is off.',
    example: { beginTime: '2026-11-30T12:00:00.000Z' },
  },
  DUPLICATE_ORDER: {
    status: 409,
    title: { en: 'Already ordered', zh: '不能重复下单' },
    detail: { en: 'You already have an order for this voucher; orderId names it.', zh: '不能重复下单。' },
    cause:
      'One buyer gets one order per voucher, and yours was accepted before (perhaps by a purchase whose answer you never saw).',
    remedy: 'Nothing is lost: read the order that orderId names.',
    example: { orderId: '663519240192000001' },
  },
  ENDED: {
    status: 409,
    title: { en: 'Sale ended', zh: '秒杀已经结束' },
    detail: { en: 'The sale is over.', zh: '秒杀已经结束。' },
    cause: 'The purchase arrived at or after the end of the sale, by the clock of the register.',
    remedy: 'There is none for this sale.',
  },
  SOLD_OUT: {
    status: 409,
    title: { en: 'Sold out', zh: '库存不足' },
    detail: { en: 'All units of this voucher are taken.', zh: '库存不足。' },
    cause: 'Every unit offered is held by an accepted order.',
    remedy: 'Try again later: a cancelled order or a restock puts units back on sale.',
  },
  INSUFFICIENT_UNITS: {
    status: 409,
    title: { en: 'Not enough free units', zh: '可用库存不足' },
    detail: {
      en: 'Fewer units are free than the stock would have to fall by; nothing was changed.',
      zh: '可用库存不足,未作修改。',
    },
    cause: 'A negative delta asked for more units than are neither sold nor on their way to being sold.',
    remedy: 'Read unitsLeft of the voucher and take away at most that many.',
  },
  IDEMPOTENCY_KEY_IN_USE: {
    status: 409,
    title: { en: 'Same call still running', zh: '相同请求正在处理' },
    detail: { en: 'A call with this Idempotency-Key is still running.', zh: '相同幂等键的请求正在处理。' },
    cause: 'The first call with this key has not been answered yet.',
    remedy: 'Repeat the call with the same key after a moment: it gets the first call’s answer.',
    retryAfterSeconds: 1,
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    title: { en: 'Idempotency-Key used for another call', zh: '幂等键已被使用' },
    detail: { en: 'This Idempotency-Key was used before with another call or body.', zh: '幂等键已用于不同的请求。' },
    cause: 'A key stands for one call with one body; this one came with something else.',
    remedy: 'Use a new key for a new call; repeat the old call with its old body.',
  },
  UNAVAILABLE: {
    status: 503,
    title: { en: 'Unavailable for the moment', zh: '服务暂不可用' },
    detail: {
      en: 'This cannot be answered truthfully right now. The call had no effect; repeat it.',
      zh: '服务暂不可用,请求未生效,请稍后重试。',
    },
    cause: 'A store is away, starting, full or being rebuilt, or the service is shutting down.',
    remedy: 'Repeat the call after Retry-After seconds. It is safe: nothing was done.',
    retryAfterSeconds: 1,
  },
  OVERLOADED: {
    status: 503,
    title: { en: 'Too busy', zh: '系统繁忙' },
    detail: {
      en: 'More purchases are waiting than can be taken. The call had no effect; repeat it.',
      zh: '系统繁忙,请求未生效,请稍后重试。',
    },
    cause: 'MAX_IN_FLIGHT purchases are in hand, or MAX_BACKLOG accepted orders wait to be stored.',
    remedy: 'Repeat the call after Retry-After seconds. It is safe: nothing was done.',
    retryAfterSeconds: 1,
  },
  OUTCOME_UNKNOWN: {
    status: 503,
    title: { en: 'Outcome unknown', zh: '结果未知' },
    detail: {
      en: 'The call was sent but not confirmed in time: it may have taken effect. Repeat it to learn the truth.',
      zh: '请求结果未知,请重试以确认。',
    },
    cause: 'A store did not answer, or did not confirm its answer as durable, before the deadline.',
    remedy:
      'Repeat a purchase: candidateOrderId may exist, and if it does the answer names it (DUPLICATE_ORDER with orderId); a second one is impossible. ' +
      'Repeat other calls with the same Idempotency-Key: they have one effect.',
    retryAfterSeconds: 1,
    example: { candidateOrderId: '663519240192000001' },
  },
} as const satisfies Record<string, CatalogueEntry>;
