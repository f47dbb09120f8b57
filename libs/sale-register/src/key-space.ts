import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '#config';
import { isCanonicalId } from '#order-stream';

/** The three keys of one voucher's sale. */
export type SaleKeys = Readonly<Record<'sale' | 'stock' | 'marks', string>>;

/** Every key name of the register, and the only place that makes one. The hash tag `{p}` keeps all keys of one decision in one slot. */
@Injectable()
export class KeySpace {
  private readonly prefix: string;
  private readonly streamName: string;
  /** Consumer group of the orders. */
  readonly group: string;

  constructor(@Inject(SETTINGS) settings: Settings) {
    this.prefix = settings.redis.keyPrefix;
    this.streamName = settings.stream.name;
    this.group = settings.stream.group;
  }

  /** Units left: a string. */
  stock(partition: number, voucherId: string): string {
    return `${this.prefix}seckill:stock:${tag(partition)}:${id(voucherId)}`;
  }

  /** Who bought, and which order: a hash userId -> orderId. */
  marks(partition: number, voucherId: string): string {
    return `${this.prefix}seckill:order:${tag(partition)}:${id(voucherId)}`;
  }

  /** Terms and state of the sale: a hash beginMs, endMs, status, units, unitsVersion, version. */
  sale(partition: number, voucherId: string): string {
    return `${this.prefix}seckill:sale:${tag(partition)}:${id(voucherId)}`;
  }

  saleKeys(partition: number, voucherId: string): SaleKeys {
    return {
      sale: this.sale(partition, voucherId),
      stock: this.stock(partition, voucherId),
      marks: this.marks(partition, voucherId),
    };
  }

  stream(partition: number): string {
    return `${this.prefix}${this.streamName}:${tag(partition)}`;
  }

  deadLetters(partition: number): string {
    return `${this.prefix}${this.streamName}.dead:${tag(partition)}`;
  }

  /** The data history on which the partition was last reconciled. */
  epoch(partition: number): string {
    return `${this.prefix}seckill:epoch:${tag(partition)}`;
  }

  /** The backlog as counted from outside, while the server cannot tell the group's lag. */
  backlog(partition: number): string {
    return `${this.prefix}seckill:backlog:${tag(partition)}`;
  }

  /** Partition of a voucher: a string. */
  where(voucherId: string): string {
    return `${this.prefix}seckill:where:${id(voucherId)}`;
  }

  /** Counter of RedisIdWorker. `day` is `yyyy:MM:dd`. */
  sequence(name: string, day: string): string {
    return `${this.prefix}icr:${name}:${day}`;
  }
}

function tag(partition: number): string {
  if (!Number.isSafeInteger(partition) || partition < 0) throw new TypeError(`no partition: ${partition}`);
  return `{${partition}}`;
}

/** Asserted here too: an id with other characters could name another key. */
function id(voucherId: string): string {
  if (!isCanonicalId(voucherId)) throw new TypeError(`no canonical voucher id: ${JSON.stringify(voucherId)}`);
  return voucherId;
}
