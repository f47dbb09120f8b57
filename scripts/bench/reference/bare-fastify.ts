import { fastify } from 'fastify';
import { tellReady } from './child.js';

/** Fastify alone: the route of a purchase, answered with the body of an accepted one. */
const app = fastify();
app.post<{ Params: { voucherId: string } }>('/v1/vouchers/:voucherId/orders', (request, reply) => {
  reply.code(202).send({ orderId: '668201345778491393', voucherId: request.params.voucherId, status: 'QUEUED' });
});
const address = await app.listen({ host: '127.0.0.1', port: 0 });
tellReady(Number(new URL(address).port));
