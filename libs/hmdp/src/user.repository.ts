import { randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Database } from '#database';
import type { LoginProfile } from './logins.js';

interface UserRow {
  readonly id: string;
  readonly nick_name: string;
  readonly icon: string;
}

const FIND = { name: 'user_find', text: 'SELECT id, nick_name, icon FROM tb_user WHERE phone = $1' };
const INSERT = {
  name: 'user_insert',
  text: `INSERT INTO tb_user (phone, nick_name) VALUES ($1, $2)
         ON CONFLICT (phone) DO NOTHING RETURNING id, nick_name, icon`,
};
const NICK_NAME_CHARS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** The rows of users. Every call throws DatabaseUnavailableError while the database is away. */
@Injectable()
export class UserRepository {
  constructor(private readonly database: Database) {}

  /** The user of the phone; made at the first login. Logins at the same time get the same user. */
  async findOrCreate(phone: string): Promise<LoginProfile> {
    const row =
      (await this.find(phone)) ??
      (await this.database.query<UserRow>(INSERT, [phone, newNickName()]))[0] ??
      (await this.find(phone));
    if (row === undefined) throw new Error('a user was neither found nor made');
    return { id: row.id, nickName: row.nick_name, icon: row.icon };
  }

  private async find(phone: string): Promise<UserRow | undefined> {
    return (await this.database.query<UserRow>(FIND, [phone]))[0];
  }
}

function newNickName(): string {
  return `user_${Array.from({ length: 10 }, () => NICK_NAME_CHARS[randomInt(NICK_NAME_CHARS.length)]).join('')}`;
}
