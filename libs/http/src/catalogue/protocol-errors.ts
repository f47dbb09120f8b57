import type { CatalogueEntry } from './catalogue-entry.js';

/** Refusals and trouble that any call can meet. */
export const PROTOCOL_ERRORS = {
  UNAUTHENTICATED: {
    status: 401,
    title: { en: 'Not authenticated', zh: '未登录' },
    detail: { en: 'A valid bearer token is needed.', zh: '请先登录。' },
    cause: 'The Authorization header is missing or its token is forged, expired, not valid yet, or names no user id.',
    remedy: 'Send "Authorization: Bearer <JWT>" with a fresh token whose sub is your user id.',
  },
  FORBIDDEN: {
    status: 403,
    title: { en: 'Not allowed', zh: '没有权限' },
    detail: { en: 'Your token lacks the role that this call needs.', zh: '没有权限。' },
    cause: 'The call is for administrators (or another role) and the token does not carry that role.',
    remedy: 'Use a token with the right role claim.',
  },
  INVALID_ARGUMENT: {
    status: 400,
    title: { en: 'Invalid argument', zh: '参数不正确' },
    detail: { en: 'One or more values are not valid; errors names each of them.', zh: '参数不正确,详见 errors。' },
    cause:
      'A path parameter, query parameter, header or body field breaks its stated format or limit, or the request cannot be parsed.',
    remedy:
      'Correct every entry of errors, then send the call again. Ids are decimal strings, times are ISO 8601 with zone.',
    example: { errors: [{ pointer: '/stock', detail: 'stock must be a whole number, 1 to 10000000' }] },
  },
  RATE_LIMITED: {
    status: 429,
    title: { en: 'Too many requests', zh: '请求过于频繁' },
    detail: { en: 'You send more calls than allowed.', zh: '请求过于频繁,请稍后重试。' },
    cause: 'Reserved: no call is limited by rate yet.',
    remedy: 'Wait Retry-After seconds before the next call.',
    retryAfterSeconds: 1,
  },
  NOT_FOUND: {
    status: 404,
    title: { en: 'No such call', zh: '接口不存在' },
    detail: { en: 'There is no call with this method and path.', zh: '接口不存在。' },
    cause: 'The path is unknown, or known with another method only.',
    remedy: 'Compare method and path with the OpenAPI document at /docs.',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    title: { en: 'Request too slow', zh: '请求超时' },
    detail: { en: 'The request was not received in full within its time limit.', zh: '请求超时。' },
    cause: 'The client sent headers or body too slowly, or stopped in the middle.',
    remedy: 'Send the request again in one go.',
  },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    title: { en: 'Body too large', zh: '请求体过大' },
    detail: { en: 'The body is larger than this call accepts.', zh: '请求体过大。' },
    cause: 'Bodies are limited to 65,536 bytes.',
    remedy: 'Send only the documented fields.',
  },
  URI_TOO_LONG: {
    status: 414,
    title: { en: 'URL too long', zh: '网址过长' },
    detail: { en: 'The URL is longer than 8,192 characters.', zh: '网址过长。' },
    cause: 'No call of this service needs a URL of that length.',
    remedy: 'Compare the URL with the OpenAPI document at /docs.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    title: { en: 'Unsupported media type', zh: '不支持的媒体类型' },
    detail: { en: 'Bodies are read as application/json only.', zh: '仅支持 application/json。' },
    cause: 'The Content-Type is missing or is not application/json.',
    remedy: 'Send JSON with "Content-Type: application/json".',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    title: { en: 'Headers too large', zh: '请求头过大' },
    detail: { en: 'The request line and headers together exceed 16,384 bytes.', zh: '请求头过大。' },
    cause: 'Often cookies of other applications on the same host, or an oversized token.',
    remedy: 'Send fewer or shorter headers.',
  },
  INTERNAL: {
    status: 500,
    title: { en: 'Internal error', zh: '内部错误' },
    detail: { en: 'A defect of the service; it was logged under this requestId.', zh: '内部错误,已记录。' },
    cause: 'Something happened that the service has no answer for. This is a defect on our side.',
    remedy: 'Report the requestId. Purchases may be repeated safely: a second order is impossible.',
  },
} as const satisfies Record<string, CatalogueEntry>;
