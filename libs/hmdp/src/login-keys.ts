import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';

/** The keys of one phone. The tags of the latter two are the whole first key: in a cluster all three share its slot. */
export interface PhoneKeys {
  readonly code: string;
  readonly tries: string;
  readonly asks: string;
}

/** Every key name of hmdp's login, under hmdp's own names. */
@Injectable()
export class LoginKeys {
  private readonly prefix: string;

  constructor(@Inject(SETTINGS) settings: Settings) {
    this.prefix = settings.redis.keyPrefix;
  }

  /** Who is logged in: a hash id, nickName, icon. */
  token(token: string): string {
    return `${this.prefix}login:token:${token}`;
  }

  /** The code that was sent, and how often it was tried and asked for. */
  phone(phone: string): PhoneKeys {
    const code = `${this.prefix}login:code:${phone}`;
    return { code, tries: `${this.prefix}login:tries:{${code}}`, asks: `${this.prefix}login:asks:{${code}}` };
  }
}
