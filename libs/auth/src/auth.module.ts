import { Inject, Module, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import { SETTINGS, type Settings } from '#config';
import { addIdentityHook } from './identity-hook.js';
import { TokenVerifier } from './token-verifier.js';

/** Checks the identity of every request of the application (see `addIdentityHook`). Needs the Fastify adapter and `SETTINGS`. */
@Module({
  providers: [
    {
      provide: TokenVerifier,
      inject: [SETTINGS],
      useFactory: (settings: Settings) => new TokenVerifier(settings.auth),
    },
  ],
})
export class AuthModule implements OnModuleInit {
  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost<FastifyAdapter>,
    private readonly verifier: TokenVerifier,
  ) {}

  onModuleInit(): void {
    addIdentityHook(this.host.httpAdapter.getInstance(), this.verifier);
  }
}
