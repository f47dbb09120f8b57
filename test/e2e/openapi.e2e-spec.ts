import { RequestMethod } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERROR_CODES } from '#http';
import { type RunningApp, startApp } from '../support/app.js';
import { tokenOf } from '../support/tokens.js';

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly security?: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[];
  readonly requestBody?: object;
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly examples?: object }>> }>
  >;
  readonly 'x-roles'?: readonly string[];
}
interface Call {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

let running: RunningApp;
let document: {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
};
let calls: Call[];

beforeAll(async () => {
  // The stores are not needed: the document, and who may call, do not depend on them.
  running = await startApp({ redisUrl: 'redis://127.0.0.1:1', databaseUrl: 'postgres://u:p@127.0.0.1:1/d' });
  document = (await (await fetch(`${running.url}/docs-json`)).json()) as typeof document;
  calls = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
});
afterAll(() => running.close());

/** Every route of every controller, as the document writes them. */
function routes(): string[] {
  const found: string[] = [];
  for (const module of running.app.get(ModulesContainer).values())
    for (const { metatype } of module.controllers.values()) {
      if (typeof metatype !== 'function') continue;
      const base = String(Reflect.getMetadata('path', metatype));
      const prototype = metatype.prototype as Record<string, unknown>;
      for (const name of Object.getOwnPropertyNames(prototype)) {
        const handler = prototype[name];
        const method =
          typeof handler === 'function' ? (Reflect.getMetadata('method', handler) as number | undefined) : undefined;
        if (method === undefined) continue;
        const path = `/${base}/${String(Reflect.getMetadata('path', handler as object))}`
          .replaceAll(/\/+/g, '/')
          .replace(/(?<=.)\/$/, '');
        found.push(`${RequestMethod[method]} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
      }
    }
  return [...new Set(found)].sort();
}

/** A request that reaches the check of who is asking. */
const send = ({ method, path }: Call, bearer?: string) =>
  fetch(running.url + path.replaceAll(/\{\w+\}/g, '1'), {
    method,
    headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
  });

describe('the OpenAPI document', () => {
  it('is OpenAPI 3.1 and holds every call', () => {
    expect(document.openapi).toBe('3.1.0');
    expect(calls.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(routes());
  });

  it('names every call once, says what it does, and what a good answer is', () => {
    const ids = calls.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(calls.length);
    for (const { operation, path } of calls) {
      expect(operation.summary, path).toMatch(/^[A-Z]\w*/);
      expect(
        Object.keys(operation.responses).some((status) => /^2\d\d$/.test(status)),
        path,
      ).toBe(true);
      const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      const parameters = (operation.parameters ?? [])
        .filter((parameter) => parameter.in === 'path')
        .map(({ name }) => name);
      expect(parameters.sort(), path).toEqual(named.sort());
    }
  });

  it('shows every error code with an example', () => {
    const shown = calls.flatMap(({ operation }) =>
      Object.values(operation.responses).flatMap(({ content }) =>
        Object.keys(content?.['application/problem+json']?.examples ?? {}),
      ),
    );
    expect([...new Set(shown)].sort()).toEqual([...ERROR_CODES].sort());
  });

  it('refers only to schemas that it holds', () => {
    const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(
      (match) => match[1] ?? '',
    );
    expect(references.length).toBeGreaterThan(20);
    for (const name of new Set(references)) expect(Object.keys(document.components.schemas)).toContain(name);
    expect(JSON.stringify(document)).not.toContain('"nullable"');
  });

  it('tells the truth about who may call', async () => {
    for (const call of calls) {
      const { operation } = call;
      const isOpen = (operation.security ?? []).length === 0;
      const place = `${call.method} ${call.path}`;
      expect([place, (await send(call)).status === 401]).toEqual([place, !isOpen]);
      if (isOpen) continue;
      expect(Object.keys(operation.responses), place).toContain('401');
      expect([place, (await send(call, tokenOf('5'))).status === 403]).toEqual([
        place,
        operation['x-roles'] !== undefined,
      ]);
      if (operation['x-roles'] !== undefined) expect(Object.keys(operation.responses), place).toContain('403');
    }
  });
});

it('the pages at /docs work, with all they load', async () => {
  const page = await fetch(`${running.url}/docs`);
  expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')]);
  const html = await page.text();
  const assets = [...html.matchAll(/(?:src|href)="(\.\/[^"]+)"/g)].map((match) => match[1] ?? '');
  expect(assets.length).toBeGreaterThan(2);
  for (const asset of assets)
    expect([asset, (await fetch(new URL(asset, `${running.url}/docs`))).status]).toEqual([asset, 200]);
});
