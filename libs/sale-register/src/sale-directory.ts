import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { guardRedis, RedisConnections } from '#redis';
import { isOtherType } from './damaged-key.js';
import { KeySpace } from './key-space.js';

const REMEMBERED_VOUCHERS = 100_000;

/** In which partition a voucher is sold. A voucher never moves, so what was heard once is remembered; the database is the record. */
@Injectable()
export class SaleDirectory {
  private readonly remembered = new LRUCache<string, number>({ max: REMEMBERED_VOUCHERS });

  constructor(
    private readonly connections: RedisConnections,
    private readonly keySpace: KeySpace,
  ) {}

  /** From this process' memory alone. */
  known(voucherId: string): number | undefined {
    return this.remembered.get(voucherId);
  }

  /** From memory, else from Redis; undefined where Redis does not know it either: then ask the database. Throws RedisUnavailableError. */
  async partitionOf(voucherId: string): Promise<number | undefined> {
    const known = this.remembered.get(voucherId);
    if (known !== undefined) return known;
    const found = await this.written(voucherId);
    if (found === null || !/^[0-9]{1,6}$/.test(found)) return undefined;
    this.remember(voucherId, Number(found));
    return Number(found);
  }

  /** Keeps in this process what the database said. */
  remember(voucherId: string, partition: number): void {
    this.remembered.set(voucherId, partition);
  }

  /** Tells Redis (and this process) where the voucher is sold; part of publishing and of rebuilding. Throws RedisUnavailableError. */
  async record(voucherId: string, partition: number): Promise<void> {
    await guardRedis(this.connections.command.set(this.keySpace.where(voucherId), String(partition)));
    this.remember(voucherId, partition);
  }

  /** What stands in Redis; a key of another type says nothing. */
  private async written(voucherId: string): Promise<string | null> {
    try {
      return await guardRedis(this.connections.command.get(this.keySpace.where(voucherId)));
    } catch (error) {
      if (isOtherType(error)) return null;
      throw error;
    }
  }
}
