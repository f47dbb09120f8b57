import { Module } from '@nestjs/common';
import { OrdersModule } from '#orders';
import { SaleRegisterModule } from '#sale-register';
import { DeadLetterService } from './dead-letter.service.js';
import { DeadLettersController } from './dead-letters.controller.js';

/** The dead letters and their admin calls. Needs the global SETTINGS of ConfigModule, and AuthModule in the application. */
@Module({
  imports: [SaleRegisterModule, OrdersModule],
  providers: [DeadLetterService],
  controllers: [DeadLettersController],
  exports: [DeadLetterService],
})
export class DeadLettersModule {}
