/** The name of `PROBLEM_SCHEMA` among the schemas of the OpenAPI document. */
export const PROBLEM_SCHEMA_NAME = 'Problem';

/** OpenAPI: the body of every refusal (RFC 9457). */
export const PROBLEM_SCHEMA = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code', 'requestId'],
  properties: {
    type: { type: 'string', format: 'uri-reference', description: 'The page of this error' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string', description: 'For people, in the language of Accept-Language (en, zh)' },
    code: { type: 'string', description: 'The stable machine word' },
    instance: { type: 'string', description: 'The path that was called' },
    requestId: { type: 'string', description: 'Also in X-Request-Id' },
    orderId: { type: 'string' },
    candidateOrderId: { type: 'string' },
    beginTime: { type: 'string', format: 'date-time' },
    endTime: { type: 'string', format: 'date-time' },
    unitsLeft: { type: 'integer' },
    retryAfter: { type: 'integer', description: 'Seconds; also in Retry-After' },
    errors: {
      type: 'array',
      description: 'Every bad value of the request',
      items: {
        type: 'object',
        required: ['detail'],
        properties: {
          pointer: { type: 'string', description: 'JSON pointer into the body' },
          parameter: { type: 'string', description: 'Name of a path or query parameter' },
          header: { type: 'string', description: 'Name of a header' },
          detail: { type: 'string' },
        },
      },
    },
  },
} as const;
