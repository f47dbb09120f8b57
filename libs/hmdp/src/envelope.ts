import type { FastifyReply } from 'fastify';

/** hmdp's own words, and ours for what hmdp has none for. Its pages show them as they are. */
export const TEXTS = {
  SERVER_FAULT: '服务器异常',
  SOLD_OUT: '库存不足',
  DUPLICATE: '不能重复下单',
  NOT_STARTED: '秒杀尚未开始！',
  ENDED: '秒杀已经结束',
  VOUCHER_NOT_FOUND: '优惠券不存在',
  BAD_PHONE: '手机号码格式错误！',
  WRONG_CODE: '验证码错误',
  CODES_TOO_OFTEN: '验证码发送过于频繁，请稍后再试',
  BAD_FIELDS: '参数错误',
} as const;

/** The body of every answer. Members without a value are left out. */
export interface Envelope {
  readonly success: boolean;
  readonly errorMsg?: string;
  readonly data?: unknown;
}

export function ok(data?: unknown): Envelope {
  return data === undefined ? { success: true } : { success: true, data };
}

export function fail(errorMsg: string): Envelope {
  return { success: false, errorMsg };
}

/** Sends a body that is JSON already. HTTP is 200 for refusals too: hmdp's pages read no other body. */
export function sendEnvelope(reply: FastifyReply, json: string): void {
  void reply
    .code(200)
    .header('cache-control', 'no-store')
    .header('content-type', 'application/json; charset=utf-8')
    .send(json);
}

/** The caller is not logged in: 401 without a body. */
export function sendUnauthorized(reply: FastifyReply): void {
  void reply.code(401).header('cache-control', 'no-store').send();
}
