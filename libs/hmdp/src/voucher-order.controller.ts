import { Controller, Inject, Param, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public } from '#auth';
import { SETTINGS, type Settings } from '#config';
import { IgnoreBody, isId, LATE, within } from '#http';
import { AdmissionService, type PurchaseOutcome } from '#voucher-order';
import { fail, sendEnvelope, sendUnauthorized, TEXTS } from './envelope.js';
import { HmdpRoutes } from './hmdp-route.js';
import { Logins } from './logins.js';

/** Part of the request's time after which a buyer whose login could not be looked up hears so. */
const LOGIN_SHARE = 0.9;

type Refusal = Exclude<PurchaseOutcome['kind'], 'ACCEPTED'>;

const SERVER_FAULT = JSON.stringify(fail(TEXTS.SERVER_FAULT));
/** Every refusal as it goes over the wire. What a later try may heal is a server fault to hmdp's clients. */
const REFUSALS: Readonly<Record<Refusal, string>> = {
  SOLD_OUT: JSON.stringify(fail(TEXTS.SOLD_OUT)),
  DUPLICATE: JSON.stringify(fail(TEXTS.DUPLICATE)),
  NOT_STARTED: JSON.stringify(fail(TEXTS.NOT_STARTED)),
  ENDED: JSON.stringify(fail(TEXTS.ENDED)),
  VOUCHER_NOT_FOUND: JSON.stringify(fail(TEXTS.VOUCHER_NOT_FOUND)),
  UNAVAILABLE: SERVER_FAULT,
  OVERLOADED: SERVER_FAULT,
  OUTCOME_UNKNOWN: SERVER_FAULT,
};

/** hmdp's purchase: the same admission as ours, in hmdp's words. */
@HmdpRoutes()
@Controller('voucher-order')
export class HmdpVoucherOrderController {
  constructor(
    private readonly logins: Logins,
    private readonly admissions: AdmissionService,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  @Post('seckill/:voucherId')
  @Public()
  @IgnoreBody()
  async buy(
    @Param('voucherId') voucherId: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const startMs = performance.now();
    const looking = this.logins.userOf(request.headers.authorization);
    const userId = await within(looking, this.settings.http.requestTimeoutMs * LOGIN_SHARE);
    if (userId === LATE) return sendEnvelope(reply, SERVER_FAULT);
    if (userId === undefined) return sendUnauthorized(reply);
    if (!isId(voucherId)) return sendEnvelope(reply, SERVER_FAULT);
    const outcome = await this.admissions.admit(voucherId, userId, startMs);
    // The id is a canonical decimal: nothing in it needs escaping.
    if (outcome.kind === 'ACCEPTED') sendEnvelope(reply, `{"success":true,"data":"${outcome.orderId}"}`);
    else sendEnvelope(reply, REFUSALS[outcome.kind]);
  }
}
