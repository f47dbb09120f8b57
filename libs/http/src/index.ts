export { AnswerInTimeInterceptor } from './answer-in-time.interceptor.js';
export { type Language, negotiateLanguage } from './accept-language.js';
export { ApiProblems, type ProblemResponse, problemResponses } from './api-problems.js';
export type { CatalogueEntry } from './catalogue/catalogue-entry.js';
export {
  ERROR_CATALOGUE,
  ERROR_CODES,
  type ErrorCode,
  errorPagePath,
  isErrorCode,
} from './catalogue/error-catalogue.js';
export { exampleProblem } from './error-page.html.js';
export { IsCanonicalId, IsWholeNumber, IsZonedIsoTime } from './field-rules.js';
export { createHttpServer, type HttpServer } from './http-adapter.js';
export { HttpModule } from './http.module.js';
export { ID_RULE, IdParam, isId, requireId } from './ids.js';
export { IgnoreBody } from './ignored-body.js';
export type { Intake } from './intake.js';
export { formatIsoTime, parseZonedIsoTime } from './iso-time.js';
export {
  type FieldProblem,
  invalidArgument,
  PROBLEM_CONTENT_TYPE,
  type ProblemDocument,
  problemDocument,
  ProblemException,
  type ProblemMembers,
  sendProblem,
} from './problem.js';
export { ProblemFilter } from './problem.filter.js';
export { REQUEST_ID_HEADER } from './request-id.js';
export { type RouteAccess, type RouteFacts, routeFacts } from './route-config.js';
export { LATE, within } from './time-limit.js';
export { isTrouble } from './trouble.js';
export { DtoPipe } from './validation.pipe.js';
export { PROBLEM_SCHEMA, PROBLEM_SCHEMA_NAME } from './problem.schema.js';
