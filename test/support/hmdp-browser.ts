/** What hmdp's pages wait for an answer (`axios.defaults.timeout`). */
export const BROWSER_TIMEOUT_MS = 2_000;

/** What hmdp's pages show instead of a result. */
export class Shown extends Error {}

export interface Envelope {
  readonly success: boolean;
  readonly errorMsg?: string;
  readonly data?: unknown;
}

/**
 * hmdp's front end as its `js/common.js` behaves: a token of the session in the header `authorization` (no scheme), two seconds of patience, `success`
 * decides, a refusal is shown in its own words, 401 means to log in, any other HTTP error is 服务器异常 whatever its body says.
 */
export class HmdpBrowser {
  /** `sessionStorage.token`. */
  token: string | undefined;

  constructor(private readonly url: string) {}

  get(path: string): Promise<unknown> {
    return this.send('GET', path);
  }

  /** As axios sends it: without a body there is no Content-Type. */
  post(path: string, body?: unknown): Promise<unknown> {
    return this.send('POST', path, body);
  }

  /** The answer as it came, for what the pages do not look at. */
  async raw(method: string, path: string, init: RequestInit = {}): Promise<{ answer: Response; text: string }> {
    const headers = { ...(this.token === undefined ? {} : { authorization: this.token }), ...(init.headers as object) };
    const signal = AbortSignal.timeout(BROWSER_TIMEOUT_MS);
    const answer = await fetch(`${this.url}${path}`, { method, signal, ...init, headers });
    return { answer, text: await answer.text() };
  }

  private async send(method: string, path: string, body?: unknown): Promise<unknown> {
    const init =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const { answer, text } = await this.raw(method, path, init);
    if (answer.status === 401) throw new Shown('请先登录');
    if (!answer.ok) throw new Shown('服务器异常');
    const envelope = JSON.parse(text) as Envelope;
    if (!envelope.success) throw new Shown(envelope.errorMsg);
    return envelope.data;
  }
}
