import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MalformedAnswerError, ResponseParser, type HttpAnswer } from './response-parser.js';

const sized = 'HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{"orderId":"7"';
const chunked = 'HTTP/1.1 409 Conflict\r\ntransfer-encoding: chunked\r\n\r\n4\r\nabcd\r\n2;x=y\r\nef\r\n0\r\n\r\n';
const closing = 'HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n';

/** Pushes the text in pieces that end at the given places; the last answer that came out. */
function readInPieces(text: string, cuts: readonly number[]): HttpAnswer | undefined {
  const parser = new ResponseParser();
  const places = [0, ...[...cuts].sort((a, b) => a - b), text.length];
  let answer: HttpAnswer | undefined;
  for (let at = 1; at < places.length; at += 1)
    answer = parser.push(Buffer.from(text.slice(places[at - 1], places[at]))) ?? answer;
  expect(parser.isClean).toBe(true);
  return answer;
}

describe('ResponseParser', () => {
  it('reads the same answer however the bytes are cut', () => {
    const answers: [string, Partial<HttpAnswer>][] = [
      [sized, { status: 202, body: '{"orderId":"7"', closes: false }],
      [chunked, { status: 409, body: 'abcdef', closes: false }],
      [closing, { status: 503, body: '', closes: true }],
      [`HTTP/1.1 100 Continue\r\n\r\n${sized}`, { status: 202 }],
      ['HTTP/1.1 204 No Content\r\n\r\n', { status: 204, body: '' }],
    ];
    for (const [text, expected] of answers) {
      const cuts = fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 6 });
      fc.assert(
        fc.property(cuts, (places) => {
          expect(readInPieces(text, places)).toMatchObject(expected);
        }),
      );
    }
  });

  it('keeps what comes after the answer apart', () => {
    const parser = new ResponseParser();
    expect(parser.push(Buffer.from(`${closing}HTTP/1.1 2`))).toMatchObject({ status: 503 });
    expect(parser.isClean).toBe(false);
  });

  it('refuses what is no answer', () => {
    for (const text of ['nonsense\r\n\r\n', 'HTTP/1.1 200 OK\r\nx: y\r\n\r\n', `${chunked.slice(0, 54)}zz\r\n`])
      expect(() => new ResponseParser().push(Buffer.from(text))).toThrow(MalformedAnswerError);
    expect(() => new ResponseParser().push(Buffer.alloc(70_000, 'a'))).toThrow(MalformedAnswerError);
  });
});
