/** One setting as it holds in this process, fit for a log: secrets and passwords are masked. */
export interface EffectiveSetting {
  readonly name: string;
  readonly value: string;
  readonly source: 'default' | 'env';
}

/** One line per setting: name, value, source. */
export function describeSettings(effective: readonly EffectiveSetting[]): string[] {
  const width = Math.max(...effective.map(({ name }) => name.length));
  return effective.map(({ name, value, source }) => `${name.padEnd(width)} ${value} (${source})`);
}

/** The address without user, password and query, each of which may hold a secret. */
export function maskAddress(text: string): string {
  const url = new URL(text);
  const user = url.username === '' && url.password === '' ? '' : '***@';
  const query = url.search === '' ? '' : '?***';
  return `${url.protocol}//${user}${url.host}${url.pathname}${query}`;
}
