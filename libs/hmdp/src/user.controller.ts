import { Body, Controller, Get, Header, HttpCode, Post, Query, Req, Res, UseInterceptors } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public } from '#auth';
import { AnswerInTimeInterceptor, IgnoreBody } from '#http';
import { type Envelope, fail, ok, TEXTS } from './envelope.js';
import { HmdpRoutes } from './hmdp-route.js';
import { LoginCodes } from './login-codes.js';
import { Logins } from './logins.js';
import { countLogin } from './metrics.js';
import { isPhone } from './phone.js';
import { UserRepository } from './user.repository.js';

/** hmdp's login: a code by phone, then a token. */
@HmdpRoutes()
@Public()
@UseInterceptors(AnswerInTimeInterceptor)
@Controller('user')
export class UserController {
  constructor(
    private readonly codes: LoginCodes,
    private readonly logins: Logins,
    private readonly users: UserRepository,
  ) {}

  @Post('code')
  @IgnoreBody()
  @HttpCode(200)
  @Header('cache-control', 'no-store')
  async code(@Query('phone') phone: unknown, @Req() request: FastifyRequest): Promise<Envelope> {
    this.logins.renew(request.headers.authorization);
    if (!isPhone(phone)) return fail(TEXTS.BAD_PHONE);
    return (await this.codes.send(phone)) === 'SENT' ? ok() : fail(TEXTS.CODES_TOO_OFTEN);
  }

  @Post('login')
  @HttpCode(200)
  @Header('cache-control', 'no-store')
  async login(@Body() body: unknown, @Req() request: FastifyRequest): Promise<Envelope> {
    this.logins.renew(request.headers.authorization);
    const { phone, code } = textsOf(body);
    if (!isPhone(phone)) return fail(TEXTS.BAD_PHONE);
    if (code === undefined || !(await this.codes.redeem(phone, code))) {
      countLogin('WRONG_CODE');
      return fail(TEXTS.WRONG_CODE);
    }
    const token = await this.logins.open(await this.users.findOrCreate(phone));
    countLogin('OPENED');
    return ok(token);
  }

  @Post('logout')
  @IgnoreBody()
  @HttpCode(200)
  @Header('cache-control', 'no-store')
  async logout(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Envelope | undefined> {
    const token = request.headers.authorization;
    if ((await this.logins.userOf(token)) === undefined || token === undefined) return unauthorized(reply);
    await this.logins.close(token);
    return ok();
  }

  @Get('me')
  @Header('cache-control', 'no-store')
  async me(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Envelope | undefined> {
    const token = request.headers.authorization;
    const id = await this.logins.userOf(token);
    if (id === undefined || token === undefined) return unauthorized(reply);
    const profile = await this.logins.profileOf(token);
    return profile === undefined ? unauthorized(reply) : ok({ id, ...profile });
  }
}

function unauthorized(reply: FastifyReply): undefined {
  reply.code(401);
}

/** Phone and code of a login; hmdp's JSON reader takes numbers for text. */
function textsOf(body: unknown): { phone?: string; code?: string } {
  if (typeof body !== 'object' || body === null) return {};
  const text = (value: unknown): string | undefined =>
    typeof value === 'string' ? value : Number.isSafeInteger(value) ? String(value) : undefined;
  const { phone, code } = body as { phone?: unknown; code?: unknown };
  const [phoneText, codeText] = [text(phone), text(code)];
  return {
    ...(phoneText === undefined ? {} : { phone: phoneText }),
    ...(codeText === undefined ? {} : { code: codeText }),
  };
}
