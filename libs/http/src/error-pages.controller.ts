import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiParam, ApiProduces, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiProblems } from './api-problems.js';
import { ERROR_CATALOGUE, ERROR_CODES, errorPagePath, isErrorCode } from './catalogue/error-catalogue.js';
import { errorIndexHtml, errorPageHtml } from './error-page.html.js';
import { sendProblem } from './problem.js';
import { routeFacts } from './route-config.js';

/** The pages that the `type` of every problem points to; HTML for people, JSON for those who ask for it. */
@Controller('docs/errors')
@ApiTags('documentation')
@ApiProduces('text/html', 'application/json')
@routeFacts({ access: 'public' })
export class ErrorPagesController {
  @Get()
  @ApiOperation({ operationId: 'listErrors', summary: 'Every error code with its meaning' })
  @ApiOkResponse({ description: 'A page for people, or JSON where Accept asks for it' })
  index(@Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    if (prefersJson(request.headers.accept)) {
      reply.send({ items: ERROR_CODES.map((code) => ({ code, type: errorPagePath(code), ...ERROR_CATALOGUE[code] })) });
      return;
    }
    sendPage(reply, errorIndexHtml());
  }

  @Get(':code')
  @ApiOperation({
    operationId: 'getError',
    summary: 'Cause, remedy and an example of an error; where the type of every problem points',
  })
  @ApiParam({ name: 'code', enum: ERROR_CODES })
  @ApiOkResponse({ description: 'A page for people, or JSON where Accept asks for it' })
  @ApiProblems('NOT_FOUND')
  page(@Param('code') code: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply): void {
    if (!isErrorCode(code)) return sendProblem(request, reply, 'NOT_FOUND');
    if (prefersJson(request.headers.accept)) {
      reply.send({ code, type: errorPagePath(code), ...ERROR_CATALOGUE[code] });
      return;
    }
    sendPage(reply, errorPageHtml(code));
  }
}

function sendPage(reply: FastifyReply, html: string): void {
  reply
    .header('content-type', 'text/html; charset=utf-8')
    .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
    .send(html);
}

/** JSON is sent where it is named before HTML, or HTML is not named at all. */
function prefersJson(accept: string | undefined): boolean {
  const json = accept?.search(/application\/(?:[a-z.+-]*\+)?json/i) ?? -1;
  const html = accept?.search(/text\/html/i) ?? -1;
  return json >= 0 && (html < 0 || json < html);
}
