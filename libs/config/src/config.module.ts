import { type DynamicModule, Module } from '@nestjs/common';
import { SETTINGS, type Settings } from './settings.js';

/** Hands the one checked `Settings` object to every room (token `SETTINGS`). */
@Module({})
export class ConfigModule {
  static forRoot(settings: Settings): DynamicModule {
    return {
      module: ConfigModule,
      global: true,
      providers: [{ provide: SETTINGS, useValue: settings }],
      exports: [SETTINGS],
    };
  }
}
