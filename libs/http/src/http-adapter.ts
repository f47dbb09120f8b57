import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { answerClientError } from './client-errors.js';
import { hideIgnoredBody } from './ignored-body.js';
import { Intake } from './intake.js';
import { sendProblem } from './problem.js';
import { ProblemFilter } from './problem.filter.js';
import { REQUEST_ID_HEADER, requestId } from './request-id.js';

/** Larger bodies are refused with 413; the largest that a call needs is a voucher of some 6 KB. */
const BODY_LIMIT_BYTES = 65_536;
const MAX_HEADER_BYTES = 16_384;
const MAX_URL_CHARS = 8192;
const TIMEOUT_CHECK_MS = 1000;
/** Above the idle limit of common load balancers (60 s), so that the balancer closes first. */
const KEEP_ALIVE_MS = 72_000;
/** How long a client may take, in milliseconds. */
export interface ReceiveLimits {
  /** For the request line and headers; then 408. */
  readonly headersMs: number;
  /** For the whole request, body included; then 408. */
  readonly requestMs: number;
  /** What a client still sends after its answer is thrown away for this long, then the connection is cut. */
  readonly drainMs: number;
}

const RECEIVE_LIMITS: ReceiveLimits = { headersMs: 5000, requestMs: 10_000, drainMs: 2000 };

/** The product's HTTP server: limits, request ids and problem answers also where the framework's own ways would bypass them. */
export interface HttpServer {
  readonly adapter: FastifyAdapter;
  readonly intake: Intake;
}

/** Makes the Fastify adapter to hand to `NestFactory.create` (with `bodyParser: false`: Fastify's own JSON parser refuses `__proto__`). */
export function createHttpServer(limits: ReceiveLimits = RECEIVE_LIMITS): HttpServer {
  const filter = new ProblemFilter();
  const adapter = new FastifyAdapter({
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    http: {
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: Math.min(TIMEOUT_CHECK_MS, limits.headersMs),
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    // Over-long ids reach the handler and are refused there like all other odd ids.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES },
    genReqId: (request: { headers: Parameters<typeof requestId>[0] }) => requestId(request.headers),
    return503OnClosing: false,
    skipMiddie: true,
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      reply.header(REQUEST_ID_HEADER, request.id);
      filter.answer(error, request, reply);
    },
    clientErrorHandler: answerClientError,
  });
  const intake = new Intake();
  addHooks(adapter.getInstance(), intake, limits.drainMs);
  return { adapter, intake };
}

function addHooks(fastify: FastifyInstance, intake: Intake, drainMs: number): void {
  fastify.removeContentTypeParser('text/plain');
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.header(REQUEST_ID_HEADER, request.id);
    if (request.url.length > MAX_URL_CHARS) return sendProblem(request, reply, 'URI_TOO_LONG');
    hideIgnoredBody(request);
    done();
  });
  intake.guard(fastify);
  fastify.addHook('onResponse', (request, _reply, done) => {
    if (!request.raw.complete) cutUnlessComplete(request.raw, drainMs);
    done();
  });
}

function cutUnlessComplete(raw: { complete: boolean; socket: { destroy(): void } }, drainMs: number): void {
  setTimeout(() => {
    if (!raw.complete) raw.socket.destroy();
  }, drainMs).unref();
}
