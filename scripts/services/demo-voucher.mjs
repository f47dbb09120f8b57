import { StartFailure } from '../setup/start-failure.mjs';

const SHOP_ID = '1';
const TITLE = 'Demo: 100 for 80';
const UNITS = 1000;
const OPEN_DAYS = 30;
const PAGES = 20;
const HOUR_MS = 3_600_000;

/**
 * @typedef {{ voucherId: string, title: string, beginTime: string, endTime: string, unitsLeft?: number }} DemoVoucher
 */

/**
 * The id of a demo voucher that can be bought now: the one of an earlier start while its window is open and units are left, else a new one.
 * @param {{ url: string, adminToken: string, nowMs?: number }} options
 * @returns {Promise<string>}
 */
export async function demoVoucher({ url, adminToken, nowMs = Date.now() }) {
  const kept = await findDemoVoucher(url, nowMs);
  if (kept !== undefined) return kept;
  const body = {
    shopId: SHOP_ID,
    title: TITLE,
    subTitle: 'One per buyer',
    rules: 'A voucher for trying things out',
    payValue: 8000,
    actualValue: 10000,
    stock: UNITS,
    beginTime: new Date(nowMs - 60_000).toISOString(),
    endTime: new Date(nowMs + OPEN_DAYS * 24 * HOUR_MS).toISOString(),
  };
  const answer = await ask(`${url}/v1/vouchers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status !== 201) throw noDemo(`POST /v1/vouchers answered ${answer.status}: ${answer.text}`);
  return String(JSON.parse(answer.text).voucherId);
}

/**
 * @param {string} url
 * @param {number} nowMs
 */
async function findDemoVoucher(url, nowMs) {
  let cursor = '';
  for (let page = 0; page < PAGES; page += 1) {
    const query = `shopId=${SHOP_ID}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`;
    const answer = await ask(`${url}/v1/vouchers?${query}`, {});
    if (answer.status !== 200) throw noDemo(`GET /v1/vouchers answered ${answer.status}: ${answer.text}`);
    const { items, nextCursor } = JSON.parse(answer.text);
    const open = items.find((/** @type {DemoVoucher} */ voucher) => isOnSale(voucher, nowMs));
    if (open !== undefined) return String(open.voucherId);
    if (typeof nextCursor !== 'string' || nextCursor === '') return undefined;
    cursor = nextCursor;
  }
  return undefined;
}

/**
 * Whether this is a demo voucher that can still be bought for an hour.
 * @param {DemoVoucher} voucher
 * @param {number} nowMs
 */
export function isOnSale({ title, beginTime, endTime, unitsLeft }, nowMs) {
  const open = Date.parse(beginTime) <= nowMs && Date.parse(endTime) > nowMs + HOUR_MS;
  return title === TITLE && open && (unitsLeft === undefined || unitsLeft > 0);
}

/**
 * One request; a 503 is asked again, as its Retry-After says, for some seconds.
 * @param {string} url
 * @param {RequestInit} request
 */
async function ask(url, request) {
  const deadline = Date.now() + 15_000;
  for (;;) {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(10_000) });
    const text = await response.text();
    if (response.status !== 503 || Date.now() > deadline) return { status: response.status, text };
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** @param {string} why */
function noDemo(why) {
  return new StartFailure({
    what: 'The demo voucher could not be put on sale',
    why,
    next: 'Read .data/logs/api.log, then run it again. To begin anew: npm run reset',
  });
}
