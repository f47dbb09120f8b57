import { Module } from '@nestjs/common';
import { RedisModule } from '#redis';
import { Admission } from './admission.js';
import { EpochRegister } from './epoch-register.js';
import { KeySpace } from './key-space.js';
import { OrderLog } from './order-log.js';
import { OrderSearch } from './order-search.js';
import { RebuildRegister } from './rebuild-register.js';
import { SaleChecks } from './sale-checks.js';
import { SaleDirectory } from './sale-directory.js';
import { SaleRegister } from './sale-register.js';
import { SequenceLease } from './sequence-lease.js';

const FACES = [
  KeySpace,
  SaleRegister,
  OrderLog,
  OrderSearch,
  EpochRegister,
  RebuildRegister,
  SaleChecks,
  SaleDirectory,
  SequenceLease,
];

/** The Redis side of a sale, and its only owner. */
@Module({ imports: [RedisModule], providers: [...FACES, Admission], exports: FACES })
export class SaleRegisterModule {}
