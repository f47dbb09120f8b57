import { randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { isId } from '#http';
import { guardRedis, loadScript, RedisConnections, runScript } from '#redis';
import { LoginKeys } from './login-keys.js';
import { TokenBatcher } from './token-batcher.js';

const OPEN_LOGIN = loadScript(new URL('./scripts/open-login.lua', import.meta.url));
const FIND_LOGINS = loadScript(new URL('./scripts/find-logins.lua', import.meta.url));

/** A login ends this long after its token was last used (hmdp: 30 minutes). */
export const LOGIN_LIFE_SECONDS = 1_800;
const RENEWAL_SLACK_SECONDS = 10;
/** Ours are 32 hex digits. Load plans that put their own into Redis may use other plain forms. */
const TOKEN = /^[0-9A-Za-z_-]{1,64}$/;

/** Whom a login stands for, as `/user/me` tells. */
export interface LoginProfile {
  readonly id: string;
  readonly nickName: string;
  readonly icon: string;
}

/** Who is logged in: hashes in Redis under hmdp's own names, so that tokens that load plans prepared are good, too. */
@Injectable()
export class Logins {
  private readonly batcher: TokenBatcher;

  constructor(
    private readonly connections: RedisConnections,
    private readonly keys: LoginKeys,
    @Inject(SETTINGS) settings: Settings,
  ) {
    // In a cluster the tokens lie in different slots, which no script may span.
    const batchSize = settings.redis.clusterNodes === undefined ? [] : [1];
    this.batcher = new TokenBatcher((tokens) => this.lookUp(tokens), settings.admission.maxInFlight, ...batchSize);
  }

  /** Opens a login and answers its token: 32 hex digits. @throws RedisUnavailableError */
  async open({ id, nickName, icon }: LoginProfile): Promise<string> {
    const token = randomBytes(16).toString('hex');
    const args = [LOGIN_LIFE_SECONDS, id, nickName, icon];
    await runScript(this.connections.command, OPEN_LOGIN, [this.keys.token(token)], args);
    return token;
  }

  /**
   * The user id under the header's token, or undefined where nobody is logged in under it; renews the login. All that ask in one tick share one
   * round trip. @throws RedisUnavailableError, LoginsUnavailableError
   */
  async userOf(token: string | undefined): Promise<string | undefined> {
    return token === undefined || !TOKEN.test(token) ? undefined : this.batcher.find(token);
  }

  /** Renews the login under the token, if there is one, without letting anybody wait. */
  renew(token: string | undefined): void {
    // An open path needs no login: that it could not be renewed is no fault of the call.
    this.userOf(token).catch(() => undefined);
  }

  /** The profile under a token that is known to be good; undefined where the login ended meanwhile. @throws RedisUnavailableError */
  async profileOf(token: string): Promise<Omit<LoginProfile, 'id'> | undefined> {
    const key = this.keys.token(token);
    const [id, nickName, icon] = await guardRedis(this.connections.command.hmget(key, 'id', 'nickName', 'icon'));
    return isId(id) ? { nickName: nickName ?? '', icon: icon ?? '' } : undefined;
  }

  /** Ends the login under the token, everywhere and at once. @throws RedisUnavailableError */
  async close(token: string): Promise<void> {
    await guardRedis(this.connections.command.del(this.keys.token(token)));
  }

  private async lookUp(tokens: readonly string[]): Promise<(string | undefined)[]> {
    const keys = tokens.map((token) => this.keys.token(token));
    const args = [LOGIN_LIFE_SECONDS, RENEWAL_SLACK_SECONDS];
    const reply = await runScript(this.connections.command, FIND_LOGINS, keys, args);
    if (!Array.isArray(reply)) throw new Error(`${FIND_LOGINS.name} replied ${typeof reply}`);
    return reply.map((id: unknown) => (isId(id) ? id : undefined));
  }
}
