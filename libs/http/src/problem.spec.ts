import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ERROR_CATALOGUE, type ErrorCode } from './catalogue/error-catalogue.js';
import { problemDocument, problemText, sendProblem } from './problem.js';

const codes = Object.keys(ERROR_CATALOGUE) as ErrorCode[];

it('is the same text, byte by byte, whether it is put together or made from the document', () => {
  const context = fc.record({
    language: fc.constantFrom('en' as const, 'zh' as const),
    requestId: fc.string({ unit: 'binary-ascii', maxLength: 128 }),
    url: fc.string({ unit: 'binary-ascii', maxLength: 300 }).map((path) => `/${path}`),
  });
  fc.assert(
    fc.property(fc.constantFrom(...codes), context, (code, { language, requestId, url }) => {
      let sent: unknown;
      const headers: Record<string, unknown> = {};
      const reply = {
        code: (status: number) => ((headers['status'] = status), reply),
        header: (name: string, value: unknown) => ((headers[name] = value), reply),
        send: (text: unknown) => (sent = text),
      };
      const request = { headers: language === 'zh' ? { 'accept-language': 'zh' } : {}, id: requestId, url };
      sendProblem(request as never, reply as never, code);
      const document = problemDocument(code, {}, { language, requestId, url });
      expect(sent).toBe(JSON.stringify(document));
      expect(headers['status']).toBe(document.status);
      expect(headers['retry-after']).toBe(document.retryAfter === undefined ? undefined : String(document.retryAfter));
    }),
  );
});

it('carries the members of the single refusal', () => {
  const context = { language: 'en', requestId: 'r', url: '/x?y' } as const;
  expect(JSON.parse(problemText('DUPLICATE_ORDER', { orderId: '7' }, context))).toMatchObject({
    code: 'DUPLICATE_ORDER',
    orderId: '7',
    instance: '/x',
  });
});
