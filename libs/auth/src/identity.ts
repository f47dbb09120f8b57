import type { FastifyRequest } from 'fastify';

/** Roles that a token may carry; an unknown role claim counts as none. */
export const ROLES = ['admin', 'payment'] as const;
export type Role = (typeof ROLES)[number];

/** Who is asking: the user id of the token's `sub` (canonical decimal string) and the role, if any. */
export interface Identity {
  readonly userId: string;
  readonly role: Role | undefined;
}

/** The name of the request member that holds the identity; set by the identity hook before the body is read. */
export const IDENTITY = 'identity';

/** The checked identity of a request. Throws on a route that is public: there is none, and asking for it is a defect. */
export function identityOf(request: FastifyRequest): Identity {
  const { identity } = request as { identity?: Identity };
  if (identity === undefined) throw new Error(`no identity on ${request.routeOptions.url}: is the route public?`);
  return identity;
}
