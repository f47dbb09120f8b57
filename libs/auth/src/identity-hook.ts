import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ProblemFilter, type RouteAccess, type RouteFacts, sendProblem } from '#http';
import { IDENTITY, type Identity } from './identity.js';
import type { TokenVerifier } from './token-verifier.js';

const SCHEME = 'bearer ';
/** Routes that libraries register (documentation pages) carry no route facts; below this path they are public. */
const PUBLIC_PATH = '/docs';

type Done = () => void;

/**
 * Checks who is asking before the body is read, by the access that the route states (default: any valid token). So 401 and 403 come before
 * every other refusal. Unknown routes pass: they are answered 404.
 */
export function addIdentityHook(fastify: FastifyInstance, verifier: TokenVerifier): void {
  const filter = new ProblemFilter();
  fastify.decorateRequest(IDENTITY, undefined);
  fastify.addHook('onRequest', (request: FastifyRequest, reply: FastifyReply, done: Done) => {
    const access = accessOf(request);
    if (access === 'public') return done();
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) return refuse(request, reply, 'UNAUTHENTICATED');
    const verified = verifier.verify(token);
    if (!(verified instanceof Promise)) return admit(request, reply, access, verified, done);
    verified.then(
      (identity) => admit(request, reply, access, identity, done),
      (error: unknown) => filter.answer(error, request, reply),
    );
  });
}

function refuse(request: FastifyRequest, reply: FastifyReply, code: 'UNAUTHENTICATED' | 'FORBIDDEN'): void {
  if ((request.routeOptions.config as RouteFacts).dialect === undefined) return sendProblem(request, reply, code);
  // Clients of the other dialect know one refusal, and read no body of it.
  void reply.code(401).header('cache-control', 'no-store').send();
}

function accessOf(request: FastifyRequest): RouteAccess {
  if (request.is404) return 'public';
  const { config, url } = request.routeOptions;
  const stated = (config as RouteFacts).access;
  if (stated !== undefined) return stated;
  return url === PUBLIC_PATH || url?.startsWith(`${PUBLIC_PATH}/`) === true || url === `${PUBLIC_PATH}-json`
    ? 'public'
    : 'buyer';
}

function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined || header.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  const token = header.slice(SCHEME.length).trim();
  return token === '' ? undefined : token;
}

function admit(
  request: FastifyRequest,
  reply: FastifyReply,
  access: RouteAccess,
  identity: Identity | undefined,
  done: Done,
): void {
  if (identity === undefined) return refuse(request, reply, 'UNAUTHENTICATED');
  if (typeof access !== 'string' && (identity.role === undefined || !access.includes(identity.role)))
    return refuse(request, reply, 'FORBIDDEN');
  (request as { [IDENTITY]?: Identity })[IDENTITY] = identity;
  done();
}
