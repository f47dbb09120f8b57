/** One HTTP answer, as far as a buyer looks at it. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
  /** The server closes the connection after this answer. */
  readonly closes: boolean;
}

/** The bytes are no HTTP/1.1 answer that this parser knows. */
export class MalformedAnswerError extends Error {
  readonly code = 'MALFORMED_ANSWER';
}

const HEAD_LIMIT_BYTES = 64 * 1024;
const BODY_LIMIT_BYTES = 16 * 1024 * 1024;
const EMPTY: Buffer = Buffer.alloc(0);

/**
 * Reads HTTP/1.1 answers off one connection, one at a time: bytes go in as they come, a whole answer comes out when it is there. Bodies by
 * content-length or chunked. Made for a load generator: no header but those is looked at.
 */
export class ResponseParser {
  private held: Buffer = EMPTY;

  /**
   * Takes further bytes; answers the answer that is complete now, or undefined.
   * @throws MalformedAnswerError
   */
  push(chunk: Buffer): HttpAnswer | undefined {
    const bytes = this.held.length === 0 ? chunk : Buffer.concat([this.held, chunk]);
    const answer = parse(bytes);
    if (answer === undefined) {
      this.held = bytes;
      return undefined;
    }
    this.held = answer.used === bytes.length ? EMPTY : bytes.subarray(answer.used);
    // 1xx answers precede the one that was asked for.
    return answer.status < 200 ? this.push(EMPTY) : answer;
  }

  /** True between two answers: nothing of a further one has come. */
  get isClean(): boolean {
    return this.held.length === 0;
  }
}

function parse(bytes: Buffer): (HttpAnswer & { used: number }) | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) {
    if (bytes.length > HEAD_LIMIT_BYTES) throw new MalformedAnswerError('the head of the answer does not end');
    return undefined;
  }
  const head = bytes.toString('latin1', 0, headEnd + 2);
  const status = /^HTTP\/1\.[01] ([1-5]\d\d)[ \r]/.exec(head)?.[1];
  if (status === undefined) throw new MalformedAnswerError(`no status line: ${head.slice(0, 60)}`);
  const closes = /\r\nconnection: *close/i.test(head);
  const start = headEnd + 4;
  const bare = Number(status) < 200 || status === '204' || status === '304';
  const length = bare ? '0' : /\r\ncontent-length: *(\d{1,8})\r\n/i.exec(head)?.[1];
  if (length !== undefined) {
    const used = start + Number(length);
    if (Number(length) > BODY_LIMIT_BYTES) throw new MalformedAnswerError(`a body of ${length} bytes`);
    if (bytes.length < used) return undefined;
    return { status: Number(status), body: bytes.toString('utf8', start, used), closes, used };
  }
  if (!/\r\ntransfer-encoding: *chunked\r\n/i.test(head)) throw new MalformedAnswerError('a body of unknown length');
  const body = chunkedBody(bytes, start);
  return body === undefined ? undefined : { status: Number(status), body: body.text, closes, used: body.used };
}

function chunkedBody(bytes: Buffer, start: number): { text: string; used: number } | undefined {
  const parts: Buffer[] = [];
  for (let at = start; ;) {
    if (at - start > BODY_LIMIT_BYTES) throw new MalformedAnswerError('the chunks do not end');
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = /^([0-9a-f]{1,7})(?:;.*)?$/i.exec(bytes.toString('latin1', at, lineEnd))?.[1];
    if (size === undefined) throw new MalformedAnswerError('no chunk size');
    const length = parseInt(size, 16);
    const end = lineEnd + 2 + length;
    if (bytes.length < end + 2) return undefined;
    if (bytes.toString('latin1', end, end + 2) !== '\r\n')
      throw new MalformedAnswerError('a chunk of another length, or trailers');
    if (length === 0) return { text: Buffer.concat(parts).toString('utf8'), used: end + 2 };
    parts.push(bytes.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}
