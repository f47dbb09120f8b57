import { ERROR_CATALOGUE, ERROR_CODES, errorPagePath, type ErrorCode } from './catalogue/error-catalogue.js';
import { problemDocument } from './problem.js';

const STYLE =
  ':root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}body{max-width:44rem;margin:2rem auto;padding:0 1rem}' +
  'pre{overflow-x:auto;padding:1rem;border:1px solid}td,th{text-align:left;padding:.2rem 1rem .2rem 0}';

/** The page of one error: what it says, its cause, its remedy, an example answer. */
export function errorPageHtml(code: ErrorCode): string {
  const { status, title, detail, cause, remedy } = ERROR_CATALOGUE[code];
  const example = JSON.stringify(exampleProblem(code), null, 2);
  return page(
    `${code} (${status})`,
    `<h1>${code}</h1><p>HTTP ${status} · ${escape(title.en)} · <span lang="zh">${escape(title.zh)}</span></p>` +
      `<p>${escape(detail.en)}</p><h2>Cause</h2><p>${escape(cause)}</p><h2>Remedy</h2><p>${escape(remedy)}</p>` +
      `<h2>Example</h2><pre><code>${escape(example)}</code></pre><p><a href="../errors">All errors</a></p>`,
  );
}

/** The list of all errors. */
export function errorIndexHtml(): string {
  const rows = ERROR_CODES.map((code) => {
    const { status, title } = ERROR_CATALOGUE[code];
    return `<tr><td><a href="errors/${code}">${code}</a></td><td>${status}</td><td>${escape(title.en)}</td><td lang="zh">${escape(title.zh)}</td></tr>`;
  });
  return page(
    'Errors',
    `<h1>Errors</h1><table><thead><tr><th>Code</th><th>Status</th><th>Meaning</th><th lang="zh">含义</th></tr></thead><tbody>${rows.join('')}</tbody></table>`,
  );
}

/** An answer with this code as a client would see it; also the example in the OpenAPI document. */
export function exampleProblem(code: ErrorCode): object {
  const { example } = ERROR_CATALOGUE[code];
  return {
    ...problemDocument(code, {}, { language: 'en', requestId: 'f3Jq0b-1a' }),
    ...example,
    type: errorPagePath(code),
  };
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escape(title)}</title><style>${STYLE}</style></head><body><main>${body}</main></body></html>\n`;
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
