import { randomInt, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { guardRedis, loadScript, RedisConnections, runScript } from '#redis';
import { LoginKeys } from './login-keys.js';
import { countCode } from './metrics.js';
import { RateLimit } from './rate-limit.js';

const ASK_CODE = loadScript(new URL('./scripts/ask-code.lua', import.meta.url));
const TRY_CODE = loadScript(new URL('./scripts/try-code.lua', import.meta.url));

/** A code ends after two minutes (hmdp), or with its fifth wrong try. */
export const CODE_LIFE_SECONDS = 120;
export const MAX_TRIES = 5;
/** A phone gets this many codes in this time. */
export const MAX_CODES = 5;
const CODES_WINDOW_SECONDS = 600;
/** All phones together, per process: what strangers ask for fills Redis no faster than this. */
const CODES_PER_SECOND = 100;
const CODES_AT_ONCE = 2_000;

const CODE = /^[0-9]{6}$/;

/** The six digits that prove a phone. */
@Injectable()
export class LoginCodes implements OnModuleInit {
  private readonly logger = new Logger(LoginCodes.name);
  private readonly limit = new RateLimit(CODES_PER_SECOND, CODES_AT_ONCE);

  constructor(
    private readonly connections: RedisConnections,
    private readonly keys: LoginKeys,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  onModuleInit(): void {
    if (this.settings.mode === 'production')
      this.logger.warn('HMDP_COMPAT: login codes are not shown here; something of yours must send login:code:<phone>');
  }

  /**
   * Makes a code for the phone. In development it is shown in the log; in production nothing here sends it. TOO_OFTEN: the phone had its codes, or
   * this process made as many as it may. @throws RedisUnavailableError
   */
  async send(phone: string): Promise<'SENT' | 'TOO_OFTEN'> {
    if (!this.limit.take()) {
      countCode('TOO_MANY');
      return 'TOO_OFTEN';
    }
    const code = String(randomInt(1_000_000)).padStart(6, '0');
    const { code: codeKey, tries, asks } = this.keys.phone(phone);
    const args = [code, CODE_LIFE_SECONDS, MAX_CODES, CODES_WINDOW_SECONDS];
    const reply = await runScript(this.connections.command, ASK_CODE, [codeKey, tries, asks], args);
    if (reply !== 0 && reply !== 1) throw new Error(`${ASK_CODE.name} replied ${String(reply)}`);
    const outcome = reply === 1 ? 'SENT' : 'TOO_OFTEN';
    countCode(outcome);
    if (outcome === 'SENT' && this.settings.mode === 'development') this.logger.log(`login code of ${phone}: ${code}`);
    return outcome;
  }

  /** Whether this is the phone's code. The right one is used up; after MAX_TRIES wrong ones it is void. @throws RedisUnavailableError */
  async redeem(phone: string, given: string): Promise<boolean> {
    // What has not the form of a code counts as no try: it cannot be a guess.
    if (!CODE.test(given)) return false;
    const { code, tries } = this.keys.phone(phone);
    const args = [MAX_TRIES, CODE_LIFE_SECONDS];
    const kept = await runScript(this.connections.command, TRY_CODE, [code, tries], args);
    if (kept === null) return false;
    if (typeof kept !== 'string') throw new Error(`${TRY_CODE.name} replied ${typeof kept}`);
    if (!CODE.test(kept) || !timingSafeEqual(Buffer.from(kept), Buffer.from(given))) return false;
    // Of several who bring the right code at once, the one whose call removes it: a code is good for one login.
    return (await guardRedis(this.connections.command.del(code, tries))) > 0;
  }
}
