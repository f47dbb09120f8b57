import type { Server } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { sendProblem } from './problem.js';

const SWEEP_MS = 50;

/** Whether new requests are taken. Closed once, when the process is about to end. */
export class Intake {
  private closed = false;

  /**
   * Stops listening and closes idle connections; requests that still arrive on open ones are refused with UNAVAILABLE. Resolves when every running
   * request is answered and every connection gone, or when the limit has passed (then what is left is cut).
   */
  async close(server: Server, limitMs: number): Promise<void> {
    this.closed = true;
    if (!server.listening) return;
    const gone = new Promise<void>((resolve) => server.close(() => resolve()));
    const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
    const limit = setTimeout(() => server.closeAllConnections(), limitMs);
    await gone;
    clearInterval(sweep);
    clearTimeout(limit);
  }

  /** Adds the two hooks that hold the promise of `close`. */
  guard(fastify: FastifyInstance): void {
    fastify.addHook('onRequest', (request: FastifyRequest, reply: FastifyReply, done) => {
      if (!this.closed) return done();
      sendProblem(request, reply, 'UNAVAILABLE');
    });
    fastify.addHook('onSend', (_request, reply, payload, done) => {
      // Node ends the connection after an answer that says so; the client opens its next one elsewhere.
      if (this.closed) reply.header('connection', 'close');
      done(null, payload);
    });
  }
}
