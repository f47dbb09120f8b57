import { RouteConfig } from '@nestjs/platform-fastify';

// The key under which the Fastify adapter looks for a handler's route config; `RouteConfig` writes it and offers no way to add to it.
const ROUTE_CONFIG_METADATA = '__fastify_route_config__';

/** Facts about a route that hooks read (`request.routeOptions.config`) before any body is read. */
export interface RouteFacts {
  /** See `IgnoreBody`. */
  readonly ignoresBody?: true;
  /** Who may call: see the decorators of the auth room. */
  readonly access?: RouteAccess;
  /**
   * Whose clients the route speaks to; absent: ours. Routes of another dialect refuse a caller with a bare 401, and the room that owns them answers
   * their errors.
   */
  readonly dialect?: 'hmdp';
}

/** `buyer`: anyone with a valid token. A list: anyone whose token carries one of the roles. */
export type RouteAccess = 'public' | 'buyer' | readonly string[];

/**
 * Adds facts to the route config of a handler; on a class, to every handler of it that does not state them itself. Several such decorators on one
 * handler add up.
 */
export function routeFacts(facts: RouteFacts): ClassDecorator & MethodDecorator {
  return (target: object, _key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    if (descriptor !== undefined) return add(facts, descriptor.value as object, target, true);
    const prototype = (target as { prototype: object }).prototype;
    for (const key of Object.getOwnPropertyNames(prototype)) {
      const handler = Object.getOwnPropertyDescriptor(prototype, key)?.value as unknown;
      if (key !== 'constructor' && typeof handler === 'function') add(facts, handler, target, false);
    }
  };
}

function add(facts: RouteFacts, handler: object, target: object, wins: boolean): void {
  const present = (Reflect.getMetadata(ROUTE_CONFIG_METADATA, handler) ?? {}) as RouteFacts;
  const merged = wins ? { ...present, ...facts } : { ...facts, ...present };
  RouteConfig(merged)(target, '', { value: handler });
}
