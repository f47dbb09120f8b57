import { applyDecorators, createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { ApiBearerAuth, ApiExtension } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { routeFacts } from '#http';
import { type Identity, identityOf, type Role } from './identity.js';

/** Where the OpenAPI document names the roles that a call needs. */
export const ROLES_EXTENSION = 'x-roles';

/** Anyone may call; no token is looked at. On a class: every handler that does not state its own access. */
export function Public(): ClassDecorator & MethodDecorator {
  return routeFacts({ access: 'public' });
}

/** Only tokens that carry one of the roles; others are FORBIDDEN. On a class: every handler that does not state its own access. */
export function Roles(...roles: [Role, ...Role[]]): ClassDecorator & MethodDecorator {
  return applyDecorators(routeFacts({ access: roles }), ApiBearerAuth(), ApiExtension(ROLES_EXTENSION, roles));
}

/** Any valid token. This is also what a handler without any of the three decorators gets. */
export function Buyer(): ClassDecorator & MethodDecorator {
  return applyDecorators(routeFacts({ access: 'buyer' }), ApiBearerAuth());
}

/** The `Identity` of who is asking, as a handler's parameter. */
export const CurrentUser = createParamDecorator((_data: unknown, context: ExecutionContext): Identity =>
  identityOf(context.switchToHttp().getRequest<FastifyRequest>()),
);
