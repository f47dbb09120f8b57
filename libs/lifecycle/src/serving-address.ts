import type { Settings } from '#config';

/** Where this instance listens, as a URL. */
export function addressOf({ http: { host, port } }: Settings): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
