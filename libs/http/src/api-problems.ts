import { applyDecorators } from '@nestjs/common';
import { ApiResponse } from '@nestjs/swagger';
import { ERROR_CATALOGUE, type ErrorCode } from './catalogue/error-catalogue.js';
import { exampleProblem } from './error-page.html.js';
import { PROBLEM_SCHEMA_NAME } from './problem.schema.js';

/** One answer of the OpenAPI document: all error codes of one status, each with its example. */
export interface ProblemResponse {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { description: string; schema: { type: 'integer' } }>>;
  readonly content: Readonly<Record<'application/problem+json', { schema: object; examples: Record<string, object> }>>;
}

/** The answers for these codes, by status. They refer to the schema named `PROBLEM_SCHEMA_NAME`, which the document must hold. */
export function problemResponses(codes: Iterable<ErrorCode>): Map<number, ProblemResponse> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set(codes)) {
    const { status } = ERROR_CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return new Map([...byStatus].map(([status, group]) => [status, problemResponse(group)]));
}

/** OpenAPI: the error codes of its own that a call answers with. Those that any call may meet are added when the document is made. */
export function ApiProblems(...codes: readonly [ErrorCode, ...ErrorCode[]]): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ...[...problemResponses(codes)].map(([status, response]) => ApiResponse({ status, ...response })),
  );
}

function problemResponse(codes: readonly ErrorCode[]): ProblemResponse {
  const waits = codes.some((code) => ERROR_CATALOGUE[code].retryAfterSeconds !== undefined);
  return {
    description: codes.map((code) => `${code}: ${ERROR_CATALOGUE[code].title.en}`).join('; '),
    ...(waits ? { headers: { 'Retry-After': { description: 'Seconds', schema: { type: 'integer' } } } } : {}),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [
            { $ref: `#/components/schemas/${PROBLEM_SCHEMA_NAME}` },
            { type: 'object', properties: { code: { type: 'string', enum: codes } } },
          ],
        },
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleProblem(code) }])),
      },
    },
  };
}
