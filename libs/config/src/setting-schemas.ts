import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** A whole number as the environment writes it: decimal digits only, within the limits. */
export interface WholeNumberRule {
  /** The plural word after the number in messages: `milliseconds`, `entries`. */
  readonly unit: string;
  readonly min: number;
  readonly max: number;
}

/** Turns a setting's text into its value, or says in an issue what is wrong with it. */
export type SettingSchema<T> = z.ZodType<T, string>;

const MAX_SHOWN_CHARS = 60;

/** What was given, short and quoted; only for settings that hold no secret. */
function shown(text: string): string {
  const short = text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}...` : text;
  return JSON.stringify(short);
}

function refuse(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

export function wholeNumber(rule: WholeNumberRule): SettingSchema<number> {
  return z.string().transform((text, context) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= rule.min && value <= rule.max) return value;
    return refuse(context, `must be a whole number of ${rule.unit}, ${rule.min} to ${rule.max}; it is ${shown(text)}`);
  });
}

export function oneOf<const T extends readonly string[]>(words: T): SettingSchema<T[number]> {
  return z.string().transform((text, context): T[number] => {
    if (words.includes(text)) return text;
    return refuse(context, `must be one of ${words.join(', ')}; it is ${shown(text)}`);
  });
}

export function flag(): SettingSchema<boolean> {
  return z.string().transform((text, context) => {
    if (text === 'true' || text === '1') return true;
    if (text === 'false' || text === '0') return false;
    return refuse(context, `must be true or false; it is ${shown(text)}`);
  });
}

/** A name that becomes part of a Redis key or a consumer's name: no blanks, no control characters, no braces (they would move the hash tag). */
export function keyName(maxChars: number): SettingSchema<string> {
  return z.string().transform((text, context) => {
    if (text.length >= 1 && text.length <= maxChars && /^[^\s{}\p{C}]+$/u.test(text)) return text;
    return refuse(
      context,
      `must be 1 to ${maxChars} characters without blanks, control characters or braces; it is ${shown(text)}`,
    );
  });
}

export function keyPrefix(maxChars: number): SettingSchema<string> {
  return z.string().transform((text, context) => {
    if (text.length <= maxChars && /^[^\s{}\p{C}]*$/u.test(text)) return text;
    return refuse(
      context,
      `must be 0 to ${maxChars} characters without blanks, control characters or braces; it is ${shown(text)}`,
    );
  });
}

export function hostName(): SettingSchema<string> {
  return z.string().transform((text, context) => {
    if (/^[A-Za-z0-9._:%-]{1,255}$/.test(text)) return text;
    return refuse(context, `must be an address or a host name to listen on; it is ${shown(text)}`);
  });
}

/** An address; the message never repeats the value, because addresses may carry passwords. */
export function address(
  schemes: readonly string[],
  example: string,
  furtherCheck?: (url: URL) => string | undefined,
): SettingSchema<string> {
  const allowed = schemes.map((scheme) => `${scheme}//`).join(' or ');
  return z.string().transform((text, context) => {
    if (text === '') return refuse(context, `must not be empty; it looks like ${example}`);
    const url = /\s/.test(text) || !URL.canParse(text) ? null : new URL(text);
    if (url === null) return refuse(context, `must be an address like ${example} (ports 1 to 65535)`);
    if (!schemes.includes(url.protocol)) return refuse(context, `must begin with ${allowed}, like ${example}`);
    if (url.hostname === '') return refuse(context, `must name a host, like ${example}`);
    if (url.port === '0') return refuse(context, `must name a port from 1 to 65535, like ${example}`);
    const problem = furtherCheck?.(url);
    return problem === undefined ? text : refuse(context, problem);
  });
}

/** `host:port,host:port`; an IPv6 host stands in brackets. */
export function hostList(): SettingSchema<{ host: string; port: number }[]> {
  return z.string().transform((text, context) => {
    const nodes = text.split(',').map((part) => {
      const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):(\d{1,5})$/.exec(part);
      const host = match?.[1] ?? match?.[2];
      const port = Number(match?.[3]);
      return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined;
    });
    if (nodes.every((node) => node !== undefined)) return nodes;
    return refuse(context, 'must be a list like host:7000,host:7001 (ports 1 to 65535, no blanks)');
  });
}

/** A signing secret, measured in bytes; the message never repeats it. */
export function secret(minBytes: number, maxBytes: number): SettingSchema<string> {
  return z.string().transform((text, context) => {
    const bytes = Buffer.byteLength(text);
    if (bytes >= minBytes && bytes <= maxBytes) return text;
    return refuse(context, `must be ${minBytes} to ${maxBytes} bytes long; it has ${bytes}`);
  });
}

/** A file of certificates, with what it holds. */
export interface CertificateFile {
  readonly path: string;
  readonly pem: string;
}

/** The path of a PEM file with at least one certificate; read once, at the start. */
export function certificateFile(): SettingSchema<CertificateFile> {
  return z.string().transform((text, context): CertificateFile => {
    let pem: string;
    try {
      pem = readFileSync(text, 'utf8');
    } catch {
      return refuse(context, `must be the path of a file that this process can read; it is ${shown(text)}`);
    }
    if (/-----BEGIN (?:TRUSTED )?CERTIFICATE-----/.test(pem)) return { path: text, pem };
    return refuse(context, `must be the path of a PEM file with a certificate; it is ${shown(text)}`);
  });
}
