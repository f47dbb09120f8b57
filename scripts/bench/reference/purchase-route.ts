import { createVerifier } from 'fast-jwt';
import { fastify } from 'fastify';
import { given, tellReady } from './child.js';

export type PeerOutcome =
  { readonly kind: 'ACCEPTED'; readonly orderId: string } | { readonly kind: 'SOLD_OUT' | 'DUPLICATE_ORDER' };

/** Serves the purchase route of a peer as most would write it: the token is checked in a hook, the outcome becomes a JSON answer. */
export async function servePurchases(
  buy: (voucherId: string, userId: string) => Promise<PeerOutcome>,
  status: 'QUEUED' | 'UNPAID',
): Promise<void> {
  const verify = createVerifier({ key: given('AUTH_JWT_SECRET'), algorithms: ['HS256'], cache: true });
  const app = fastify();
  app.post<{ Params: { voucherId: string } }>('/v1/vouchers/:voucherId/orders', async (request, reply) => {
    const { voucherId } = request.params;
    let claims: { sub: string };
    try {
      claims = verify(request.headers.authorization?.slice('Bearer '.length) ?? '') as { sub: string };
    } catch {
      return reply.code(401).send({ code: 'UNAUTHENTICATED' });
    }
    const outcome = await buy(voucherId, claims.sub);
    if (outcome.kind !== 'ACCEPTED') return reply.code(409).send({ code: outcome.kind });
    return reply.code(202).send({ orderId: outcome.orderId, voucherId, status });
  });
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  tellReady(Number(new URL(address).port));
}
