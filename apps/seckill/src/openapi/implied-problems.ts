import type { OpenAPIObject } from '@nestjs/swagger';
import { ROLES_EXTENSION } from '#auth';
import { type ErrorCode, isErrorCode, problemResponses } from '#http';

type PathItem = OpenAPIObject['paths'][string];
type Operation = NonNullable<PathItem['get']>;
type Response = { content?: Record<string, { examples?: Record<string, unknown> }>; description?: string };

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const;
/** What the server may answer to any request, before or after it reaches a handler. */
const ANY_CALL: readonly ErrorCode[] = [
  'REQUEST_TIMEOUT',
  'URI_TOO_LONG',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
  'UNAVAILABLE',
];
const WITH_BODY: readonly ErrorCode[] = ['INVALID_ARGUMENT', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];

/** Adds to every call of the document the errors that follow from its shape: who may call, parameters, a body, the server itself. */
export function addImpliedProblems(document: OpenAPIObject): void {
  for (const item of Object.values(document.paths))
    for (const method of METHODS) {
      const operation = item[method];
      if (operation !== undefined) completeProblems(operation);
    }
}

function completeProblems(operation: Operation): void {
  const responses = operation.responses as Record<string, Response>;
  const stated = Object.values(responses).flatMap((response) =>
    Object.keys(problemExamples(response)).filter(isErrorCode),
  );
  for (const [status, problem] of problemResponses([...stated, ...implied(operation)])) {
    const present = responses[String(status)];
    const other = Object.entries(present?.content ?? {}).filter(([type]) => type !== PROBLEM_TYPE);
    responses[String(status)] = {
      ...problem,
      // A health report may be the usual answer of this status.
      ...(other.length > 0 && present?.description !== undefined ? { description: present.description } : {}),
      content: { ...Object.fromEntries(other), ...(problem.content as Response['content']) },
    };
  }
}

const PROBLEM_TYPE = 'application/problem+json';

function problemExamples(response: Response): Record<string, unknown> {
  return response.content?.[PROBLEM_TYPE]?.examples ?? {};
}

function implied(operation: Operation): ErrorCode[] {
  const codes: ErrorCode[] = [...ANY_CALL];
  if ((operation.security ?? []).length > 0) codes.push('UNAUTHENTICATED');
  if (ROLES_EXTENSION in operation) codes.push('FORBIDDEN');
  if (operation.requestBody !== undefined) codes.push(...WITH_BODY);
  if ((operation.parameters ?? []).length > 0) codes.push('INVALID_ARGUMENT');
  return codes;
}
