import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { PROBLEM_SCHEMA, PROBLEM_SCHEMA_NAME } from '#http';
import { addImpliedProblems } from './implied-problems.js';

const DESCRIPTION = [
  'Limited vouchers for a crowd that arrives in the same second.',
  'Ids are decimal strings without sign or leading zeros, 1 to 9223372036854775807. Times are ISO 8601 with zone. Amounts are cents.',
  'Every refusal is a problem (RFC 9457) with a stable `code`; its `type` opens a page with cause and remedy. Every answer carries `X-Request-Id`.',
  'A purchase is safe to repeat: a second order is impossible, and the answer names the first.',
].join('\n\n');

/** Serves the OpenAPI document at /docs-json and the pages made of it at /docs. The document is made at the first look at it. */
export function serveOpenApi(app: NestFastifyApplication): void {
  let document: OpenAPIObject | undefined;
  SwaggerModule.setup('docs', app, () => (document ??= openApiDocument(app)), {
    jsonDocumentUrl: 'docs-json',
    raw: ['json'],
    customSiteTitle: 'Flash sale API',
  });
}

/** OpenAPI 3.1, complete: every call, every error code with an example. */
export function openApiDocument(app: NestFastifyApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Flash sale')
    .setDescription(DESCRIPTION)
    .setVersion('1')
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addBearerAuth({
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: '`sub` is the user id; `role` may be admin or payment.',
    })
    .build();
  const document = SwaggerModule.createDocument(app, config);
  document.components = {
    ...document.components,
    schemas: { ...document.components?.schemas, [PROBLEM_SCHEMA_NAME]: structuredClone(PROBLEM_SCHEMA) as object },
  };
  addImpliedProblems(document);
  return document;
}
