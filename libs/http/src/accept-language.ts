import { LRUCache } from 'lru-cache';

/** The languages that answers speak. */
export type Language = 'en' | 'zh';

const DEFAULT_LANGUAGE: Language = 'en';
const MAX_HEADER_CHARS = 256;
/** Browsers send few different headers; remembering the last ones spares the parsing. */
const remembered = new LRUCache<string, Language>({ max: 256 });

/** The language that an Accept-Language header prefers (RFC 9110 section 12.5.4, q-values honoured); English where it prefers none of ours. */
export function negotiateLanguage(header: string | undefined): Language {
  if (header === undefined || header.length > MAX_HEADER_CHARS) return DEFAULT_LANGUAGE;
  const known = remembered.get(header);
  if (known !== undefined) return known;
  const language = parse(header);
  remembered.set(header, language);
  return language;
}

function parse(header: string): Language {
  let best: { language: Language; weight: number } | undefined;
  for (const part of header.split(',')) {
    const match = /^\s*([A-Za-z*]{1,8})(?:-[A-Za-z0-9-]*)?\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*)?$/.exec(part);
    if (match === null) continue;
    const tag = match[1]?.toLowerCase();
    const language = tag === 'zh' ? 'zh' : tag === 'en' || tag === '*' ? 'en' : undefined;
    const weight = Number(match[2] ?? 1);
    if (language !== undefined && weight > (best?.weight ?? 0)) best = { language, weight };
  }
  return best?.language ?? DEFAULT_LANGUAGE;
}
