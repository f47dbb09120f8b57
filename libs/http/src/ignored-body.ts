import type { FastifyRequest } from 'fastify';
import { type RouteFacts, routeFacts } from './route-config.js';

/**
 * The handler takes no body: whatever is sent, of any type and size, is not read, and the call is answered at once. (What the client still sends
 * is thrown away for a bounded time, then the connection is closed.)
 */
export function IgnoreBody(): MethodDecorator {
  return routeFacts({ ignoresBody: true });
}

/** Hides the body from the framework where the route ignores it. Runs before the body would be read. */
export function hideIgnoredBody(request: FastifyRequest): void {
  if ((request.routeOptions.config as RouteFacts).ignoresBody !== true) return;
  // Without these three headers the framework takes the request for one without a body. Most have none: deleting what is not there costs too.
  const { headers } = request.raw;
  const isEmpty = headers['content-length'] === undefined || headers['content-length'] === '0';
  if (isEmpty && headers['content-type'] === undefined && headers['transfer-encoding'] === undefined) return;
  delete headers['content-type'];
  delete headers['content-length'];
  delete headers['transfer-encoding'];
}
