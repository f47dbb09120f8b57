import { applyDecorators } from '@nestjs/common';
import { ApiResponse } from '@nestjs/swagger';
import { ERROR_CATALOGUE, type ErrorCode } from './catalogue/error-catalogue.js';
import { exampleProblem } from './error-page.html.js';

const PROBLEM_SCHEMA = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code', 'requestId'],
  properties: {
    type: { type: 'string', description: 'The page of this error' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string', description: 'For people, in the language of Accept-Language (en, zh)' },
    code: { type: 'string', description: 'The stable machine word' },
    instance: { type: 'string' },
    requestId: { type: 'string' },
    orderId: { type: 'string' },
    candidateOrderId: { type: 'string' },
    beginTime: { type: 'string', format: 'date-time' },
    endTime: { type: 'string', format: 'date-time' },
    unitsLeft: { type: 'integer' },
    retryAfter: { type: 'integer', description: 'Seconds; also in Retry-After' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['detail'],
        properties: {
          pointer: { type: 'string' },
          parameter: { type: 'string' },
          header: { type: 'string' },
          detail: { type: 'string' },
        },
      },
    },
  },
};

/** OpenAPI: the error codes that a call answers with, each with its example, grouped by status. */
export function ApiProblems(...codes: readonly [ErrorCode, ...ErrorCode[]]): MethodDecorator & ClassDecorator {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set(codes)) {
    const { status } = ERROR_CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return applyDecorators(
    ...[...byStatus].map(([status, group]) =>
      ApiResponse({
        status,
        description: group.map((code) => `${code}: ${ERROR_CATALOGUE[code].title.en}`).join('; '),
        ...(group.some((code) => ERROR_CATALOGUE[code].retryAfterSeconds !== undefined)
          ? { headers: { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' as const } } } }
          : {}),
        content: {
          'application/problem+json': {
            schema: {
              ...PROBLEM_SCHEMA,
              properties: { ...PROBLEM_SCHEMA.properties, code: { type: 'string', enum: group } },
            },
            examples: Object.fromEntries(group.map((code) => [code, { value: exampleProblem(code) }])),
          },
        },
      }),
    ),
  );
}
