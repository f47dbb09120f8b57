import type { FastifyReply, FastifyRequest } from 'fastify';
import { expect, it, vi } from 'vitest';
import type { Settings } from '#config';
import type { AdmissionService } from '#voucher-order';
import type { Logins } from './logins.js';
import { HmdpVoucherOrderController } from './voucher-order.controller.js';

it('answers a purchase in time where the login cannot be looked up, and buys nothing', async () => {
  const logins = { userOf: () => new Promise<undefined>(() => undefined) } as unknown as Logins;
  const admit = vi.fn();
  const settings = { http: { requestTimeoutMs: 100 } } as Settings;
  const controller = new HmdpVoucherOrderController(logins, { admit } as unknown as AdmissionService, settings);
  const send = vi.fn();
  const reply = { code: () => reply, header: () => reply, send } as unknown as FastifyReply;
  await controller.buy('17', { headers: { authorization: 't' } } as FastifyRequest, reply);
  expect(send).toHaveBeenCalledExactlyOnceWith('{"success":false,"errorMsg":"服务器异常"}');
  expect(admit).not.toHaveBeenCalled();
});
