import { Agent, request } from 'node:http';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatLocalTime } from '#hmdp';
import { type RunningApp, startApp, whenReady } from '../support/app.js';
import { type Envelope, HmdpBrowser } from '../support/hmdp-browser.js';
import { createTestDatabase, TestRedis } from '../support/services.js';
import { ADMIN, tokenOf } from '../support/tokens.js';

const PREFIX = 'shop:';
const HOUR_MS = 3_600_000;

let server: TestRedis;
let home: Awaited<ReturnType<typeof createTestDatabase>>;
let product: RunningApp;
let redis: Redis;
let sql: pg.Client;

beforeAll(async () => {
  [server, home] = await Promise.all([TestRedis.start(), createTestDatabase()]);
  const env = { HMDP_COMPAT: 'true', REDIS_KEY_PREFIX: PREFIX };
  product = await startApp({ redisUrl: server.url, databaseUrl: home.url, env });
  redis = new Redis(server.url);
  sql = new pg.Client({ connectionString: home.url });
  await Promise.all([sql.connect(), whenReady(product.url)]);
});
afterAll(async () => {
  await product.close();
  redis.disconnect();
  await sql.end();
  await server.destroy();
  await home.destroy();
});

let phones = 13_800_000_000;
const newPhone = (): string => String((phones += 1));
let shops = 100;
const newShop = (): number => (shops += 1);
const codeOf = (phone: string): Promise<string | null> => redis.get(`${PREFIX}login:code:${phone}`);
const tokenKey = (token: string | undefined): string => `${PREFIX}login:token:${token}`;

/** A browser whose user went through the login page. */
async function loggedIn(phone = newPhone()): Promise<HmdpBrowser> {
  const browser = new HmdpBrowser(product.url);
  expect(await browser.post(`/user/code?phone=${phone}`)).toBeUndefined();
  browser.token = (await browser.post('/user/login', { phone, code: await codeOf(phone) })) as string;
  return browser;
}

const local = (offsetMs: number): string => formatLocalTime(Date.now() + offsetMs);
const terms = (more: object = {}): Record<string, unknown> => ({
  shopId: 1,
  title: '100元代金券',
  subTitle: '周一至周五可用',
  rules: '全场通用\\n无需预约',
  payValue: 8000,
  actualValue: 10_000,
  type: 1,
  stock: 100,
  beginTime: local(-HOUR_MS),
  endTime: local(HOUR_MS),
  ...more,
});

/** The administrator's console: the same calls with the product's own token. */
function adminConsole(token = ADMIN): HmdpBrowser {
  const browser = new HmdpBrowser(product.url);
  browser.token = `Bearer ${token}`;
  return browser;
}
const putOnSale = (more: object = {}): Promise<string> =>
  adminConsole().post('/voucher/seckill', terms(more)) as Promise<string>;
const stored = async (voucherId: string): Promise<{ id: string; user_id: string }[]> =>
  (
    await sql.query<{ id: string; user_id: string }>('SELECT id, user_id FROM tb_voucher_order WHERE voucher_id = $1', [
      voucherId,
    ])
  ).rows;

describe('the login page', () => {
  it('asks for a code, logs in, and shows who is there; the same phone is the same user', async () => {
    const phone = newPhone();
    const browser = await loggedIn(phone);
    expect(browser.token).toMatch(/^[0-9a-f]{32}$/);
    const me = (await browser.get('/user/me')) as Record<string, string>;
    expect(me).toEqual({
      id: expect.stringMatching(/^[1-9][0-9]*$/) as string,
      nickName: expect.stringMatching(/^user_[a-z0-9]{10}$/) as string,
      icon: '',
    });
    expect(await redis.hgetall(tokenKey(browser.token))).toEqual(me);
    const { rows } = await sql.query('SELECT id, nick_name FROM tb_user WHERE phone = $1', [phone]);
    expect(rows).toEqual([{ id: me['id'], nick_name: me['nickName'] }]);
    const again = await loggedIn(phone);
    expect(again.token).not.toBe(browser.token);
    expect(await again.get('/user/me')).toEqual(me);
  });

  it('gives one user to a phone that logs in twice at once', async () => {
    const phone = newPhone();
    const browser = new HmdpBrowser(product.url);
    await browser.post(`/user/code?phone=${phone}`);
    const code = await codeOf(phone);
    const both = await Promise.allSettled([1, 2].map(() => browser.post('/user/login', { phone, code })));
    expect(both.some(({ status }) => status === 'fulfilled')).toBe(true);
    const { rows } = await sql.query('SELECT id FROM tb_user WHERE phone = $1', [phone]);
    expect(rows).toHaveLength(1);
  });

  it('steps over the ids of imported users', async () => {
    const { id } = (await (await loggedIn()).get('/user/me')) as { id: string };
    const next = BigInt(id) + 1n;
    await sql.query('INSERT INTO tb_user (id, phone) VALUES ($1, $2)', [String(next), newPhone()]);
    expect(await (await loggedIn()).get('/user/me')).toMatchObject({ id: String(next + 1n) });
  });

  it('says what is wrong with a phone or a code', async () => {
    const browser = new HmdpBrowser(product.url);
    for (const query of ['', '?phone=', '?phone=123', '?phone=13800000000&phone=13800000000'])
      await expect(browser.post(`/user/code${query}`)).rejects.toThrow('手机号码格式错误！');
    await expect(browser.post('/user/login', { phone: '123', code: '123456' })).rejects.toThrow('手机号码格式错误！');
    for (const code of [undefined, null, '', '12345', 'abcdef', { $gt: '' }])
      await expect(browser.post('/user/login', { phone: newPhone(), code })).rejects.toThrow('验证码错误');
  });

  it('takes a code once, for two minutes', async () => {
    const phone = newPhone();
    const browser = new HmdpBrowser(product.url);
    await browser.post(`/user/code?phone=${phone}`);
    const code = await codeOf(phone);
    expect(code).toMatch(/^[0-9]{6}$/);
    const life = await redis.ttl(`${PREFIX}login:code:${phone}`);
    expect(life).toBeGreaterThan(110);
    expect(life).toBeLessThanOrEqual(120);
    await browser.post('/user/login', { phone, code });
    await expect(browser.post('/user/login', { phone, code })).rejects.toThrow('验证码错误');
  });

  it('voids a code after five wrong tries, also where they come at once; a new code is good again', async () => {
    const phone = newPhone();
    const browser = new HmdpBrowser(product.url);
    await browser.post(`/user/code?phone=${phone}`);
    const code = (await codeOf(phone)) as string;
    const wrong = code === '000000' ? '000001' : '000000';
    const guesses = Array.from({ length: 20 }, () => browser.post('/user/login', { phone, code: wrong }));
    for (const guess of await Promise.allSettled(guesses))
      expect(guess).toMatchObject({ status: 'rejected', reason: { message: '验证码错误' } });
    await expect(browser.post('/user/login', { phone, code })).rejects.toThrow('验证码错误');
    await loggedIn(phone);
  });

  it('still takes the right code after four wrong ones', async () => {
    const phone = newPhone();
    const browser = new HmdpBrowser(product.url);
    await browser.post(`/user/code?phone=${phone}`);
    const code = (await codeOf(phone)) as string;
    const wrong = code === '000000' ? '000001' : '000000';
    for (let i = 0; i < 4; i += 1)
      await expect(browser.post('/user/login', { phone, code: wrong })).rejects.toThrow('验证码错误');
    expect(await browser.post('/user/login', { phone, code })).toMatch(/^[0-9a-f]{32}$/);
  });

  it('gives a phone five codes in ten minutes', async () => {
    const phone = newPhone();
    const browser = new HmdpBrowser(product.url);
    for (let i = 0; i < 5; i += 1) await browser.post(`/user/code?phone=${phone}`);
    const last = await codeOf(phone);
    await expect(browser.post(`/user/code?phone=${phone}`)).rejects.toThrow('验证码发送过于频繁');
    expect(await codeOf(phone)).toBe(last);
  });
});

describe('a login', () => {
  it('lives for 30 minutes from its last use, on open paths too', async () => {
    const browser = await loggedIn();
    const key = tokenKey(browser.token);
    expect(await redis.ttl(key)).toBeGreaterThan(1_790);
    for (const path of ['/user/me', '/voucher/list/1']) {
      await redis.expire(key, 60);
      await browser.get(path);
      await expect.poll(() => redis.ttl(key)).toBeGreaterThan(1_790);
    }
  });

  it('is over at once after logout and after its end', async () => {
    const browser = await loggedIn();
    await browser.get('/user/me');
    await browser.post('/user/logout');
    await expect(browser.get('/user/me')).rejects.toThrow('请先登录');
    const other = await loggedIn();
    await other.get('/user/me');
    await redis.del(tokenKey(other.token));
    await expect(other.post(`/voucher-order/seckill/1`)).rejects.toThrow('请先登录');
  });

  it('is needed on protected paths: 401 without a body for no token, an unknown one, and none of ours', async () => {
    await redis.set(tokenKey('astring'), 'no login');
    await redis.hset(tokenKey('noid'), 'id', '0x1', 'nickName', 'x');
    const paths = [
      ['POST', '/voucher-order/seckill/1'],
      ['POST', '/voucher-order/seckill/x'],
      ['GET', '/user/me'],
      ['POST', '/user/logout'],
    ] as const;
    for (const token of [undefined, 'f'.repeat(32), 'astring', 'noid', '', `Bearer ${tokenOf('5')}`, '*'])
      for (const [method, path] of paths) {
        const browser = new HmdpBrowser(product.url);
        browser.token = token;
        const { answer, text } = await browser.raw(method, path);
        expect([token, path, answer.status, text]).toEqual([token, path, 401, '']);
      }
  });
});

describe('the shop page', () => {
  it('lists what is on the shelf as hmdp does, with times without zone and the units left', async () => {
    const shopId = newShop();
    const times = { beginTime: '2022-01-26T10:09:17', endTime: '2099-01-26T12:09:04' };
    const id = await putOnSale({ shopId, stock: 2, ...times });
    const ordinary = (await adminConsole().post('/voucher', {
      ...terms({ shopId, title: '普通券' }),
      type: 0,
    })) as string;
    const off = await putOnSale({ shopId });
    await sql.query('UPDATE tb_voucher SET status = 2 WHERE id = $1', [off]);
    const browser = await loggedIn();
    await browser.post(`/voucher-order/seckill/${id}`);
    const list = (): Promise<unknown> => browser.get(`/voucher/list/${shopId}`);
    const { subTitle, rules, payValue, actualValue } = terms();
    const shown = { shopId: String(shopId), subTitle, rules, payValue, actualValue };
    await expect.poll(list).toEqual([
      { ...shown, id, title: '100元代金券', type: 1, stock: 1, ...times },
      { ...shown, id: ordinary, title: '普通券', type: 0 },
    ]);
    expect(await browser.get(`/voucher/list/${newShop()}`)).toEqual([]);
    await expect(browser.get('/voucher/list/x')).rejects.toThrow('服务器异常');
  });
});

describe('making a voucher', () => {
  it('takes an administrator; anyone else hears 401 without a body, whatever is sent', async () => {
    const buyer = await loggedIn();
    for (const authorization of [undefined, buyer.token, `Bearer ${tokenOf('5')}`, ADMIN, 'Bearer nonsense'])
      for (const path of ['/voucher', '/voucher/seckill'])
        for (const body of [JSON.stringify(terms()), '{']) {
          const browser = new HmdpBrowser(product.url);
          browser.token = authorization;
          const { answer, text } = await browser.raw('POST', path, {
            body,
            headers: { 'content-type': 'application/json' },
          });
          expect([authorization, answer.status, text]).toEqual([authorization, 401, '']);
        }
  });

  it.each([
    [{ stock: 0 }, 'stock'],
    [{ stock: 1.5 }, 'stock'],
    [{ stock: 'many' }, 'stock'],
    [{ title: '' }, 'title'],
    [{ title: 'a\0b' }, 'title'],
    [{ payValue: -1 }, 'payValue'],
    [{ actualValue: null }, 'actualValue'],
    [{ shopId: null }, 'shopId'],
    [{ beginTime: '2022-02-30T00:00:00' }, 'beginTime'],
    [{ endTime: '2000-01-01T00:00:00' }, 'endTime'],
    [{ rules: 'x'.repeat(1025) }, 'rules'],
  ])('names a bad field: %j', async (more, field) => {
    await expect(putOnSale(more)).rejects.toThrow(`参数错误：${field}`);
  });

  it('takes what hmdp’s JSON reader takes: digits in strings, null and unknown fields', async () => {
    const id = await putOnSale({ shopId: '7', stock: '5', payValue: '8000', rules: null, id: null, more: { a: 1 } });
    expect(id).toMatch(/^[1-9][0-9]*$/);
    const { rows } = await sql.query('SELECT stock FROM tb_seckill_voucher WHERE voucher_id = $1', [id]);
    expect(rows).toEqual([{ stock: 5 }]);
  });

  it('answers what cannot be read as hmdp does: 服务器异常 with HTTP 200', async () => {
    for (const [body, type] of [
      ['{', 'application/json'],
      ['', 'application/json'],
      ['{"__proto__":{}}', 'application/json'],
      ['a=1', 'application/x-www-form-urlencoded'],
      [JSON.stringify({ title: 'x'.repeat(70_000) }), 'application/json'],
    ] as const) {
      const { answer, text } = await adminConsole().raw('POST', '/voucher/seckill', {
        body,
        headers: { 'content-type': type },
      });
      expect([answer.status, JSON.parse(text)]).toEqual([200, { success: false, errorMsg: '服务器异常' }]);
    }
  });
});

describe('the button', () => {
  it('buys: the order id is a string of 64 bits, and the order is stored under it', async () => {
    const id = await putOnSale();
    const browser = await loggedIn();
    const { answer, text } = await browser.raw('POST', `/voucher-order/seckill/${id}`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    const envelope = JSON.parse(text) as Envelope;
    expect(envelope).toEqual({ success: true, data: expect.stringMatching(/^[1-9][0-9]{17,18}$/) as string });
    expect(Number(envelope.data)).toBeGreaterThan(Number.MAX_SAFE_INTEGER);
    const { id: userId } = (await browser.get('/user/me')) as { id: string };
    await expect.poll(() => stored(id)).toEqual([{ id: envelope.data, user_id: userId }]);
  });

  it('says why not: bought already, sold out, not begun, ended, unknown', async () => {
    const [one, early, late] = await Promise.all([
      putOnSale({ stock: 1 }),
      putOnSale({ beginTime: local(HOUR_MS), endTime: local(2 * HOUR_MS) }),
      putOnSale({ beginTime: local(-2 * HOUR_MS), endTime: local(-HOUR_MS) }),
    ]);
    const [first, second] = await Promise.all([loggedIn(), loggedIn()]);
    const press = (browser: HmdpBrowser, id: string): Promise<unknown> => browser.post(`/voucher-order/seckill/${id}`);
    expect(await press(first, one)).toMatch(/^[0-9]{18,19}$/);
    await expect(press(second, one)).rejects.toThrow('库存不足');
    await expect(press(first, one)).rejects.toThrow('不能重复下单');
    await expect(press(second, early)).rejects.toThrow('秒杀尚未开始！');
    await expect(press(second, late)).rejects.toThrow('秒杀已经结束');
    await expect(press(second, '999999999')).rejects.toThrow('优惠券不存在');
    await expect(press(second, 'abc')).rejects.toThrow('服务器异常');
    await expect(press(second, '0')).rejects.toThrow('服务器异常');
  });

  it('is the same sale as ours: who bought here has bought there', async () => {
    const id = await putOnSale();
    const browser = await loggedIn();
    const orderId = await browser.post(`/voucher-order/seckill/${id}`);
    const { id: userId } = (await browser.get('/user/me')) as { id: string };
    const ours = await fetch(`${product.url}/v1/vouchers/${id}/orders`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokenOf(userId)}` },
    });
    expect(await ours.json()).toMatchObject({ code: 'DUPLICATE_ORDER', orderId });
  });
});

describe('the load plan', () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 500 });
  afterAll(() => agent.destroy());

  const prepare = async (count: number): Promise<string[]> => {
    const tokens = Array.from({ length: count }, (_, index) => `loadplan${String(index).padStart(24, '0')}`);
    const pipeline = redis.pipeline();
    tokens.forEach((token, index) =>
      pipeline.hset(tokenKey(token), { id: String(500_000 + index), nickName: 'load', icon: '' }),
    );
    await pipeline.exec();
    return tokens;
  };
  /** Load plans have more patience than browsers, and connections that they keep. */
  const press = (token: string, voucherId: string): Promise<Envelope> =>
    new Promise((resolve, reject) => {
      const options = { method: 'POST', agent, headers: { authorization: token } };
      const sent = request(`${product.url}/voucher-order/seckill/${voucherId}`, options, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve(JSON.parse(text) as Envelope));
      });
      sent.on('error', reject);
      sent.end();
    });
  const texts = (envelopes: readonly Envelope[]): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const { success, errorMsg } of envelopes) {
      const text = success ? 'bought' : String(errorMsg);
      counts[text] = (counts[text] ?? 0) + 1;
    }
    return counts;
  };

  it('1,000 users with prepared tokens at once: 100 units, 100 buyers, an order each', async () => {
    const id = await putOnSale({ stock: 100 });
    const crowd = await prepare(1_000);
    const answers = await Promise.all(crowd.map((token) => press(token, id)));
    expect(texts(answers)).toEqual({ bought: 100, 库存不足: 900 });
    const told = answers.flatMap(({ success, data }) => (success ? [data as string] : []));
    await expect.poll(async () => (await stored(id)).map((order) => order.id).sort()).toEqual(told.sort());
    expect(new Set((await stored(id)).map((order) => order.user_id)).size).toBe(100);
  });

  it('200 requests at once with one token: exactly one order', async () => {
    const id = await putOnSale({ stock: 100 });
    const [token] = (await prepare(1)) as [string];
    const answers = await Promise.all(Array.from({ length: 200 }, () => press(token, id)));
    expect(texts(answers)).toEqual({ bought: 1, 不能重复下单: 199 });
    await expect.poll(() => stored(id)).toHaveLength(1);
  });
});

it('the documented API does not name hmdp’s routes', async () => {
  const document = (await (await fetch(`${product.url}/docs-json`)).json()) as { paths: Record<string, unknown> };
  const paths = Object.keys(document.paths);
  expect(paths.length).toBeGreaterThan(5);
  expect(paths.filter((path) => /^\/(user|voucher)/.test(path))).toEqual([]);
});

it('without HMDP_COMPAT there are none of these routes', async () => {
  const plain = await startApp({ redisUrl: server.url, databaseUrl: home.url });
  try {
    for (const path of ['/user/me', '/voucher/list/1']) expect((await fetch(plain.url + path)).status).toBe(404);
  } finally {
    await plain.close();
  }
});

describe('a Redis that does not answer', () => {
  it('is 服务器异常 with HTTP 200, within the browser’s patience', async () => {
    const id = await putOnSale();
    const browser = await loggedIn();
    server.signal('SIGSTOP');
    try {
      const calls = [
        browser.raw('POST', `/voucher-order/seckill/${id}`),
        browser.raw('POST', `/user/code?phone=${newPhone()}`),
        browser.raw('GET', '/user/me'),
      ];
      for (const { answer, text } of await Promise.all(calls))
        expect([answer.status, JSON.parse(text)]).toEqual([200, { success: false, errorMsg: '服务器异常' }]);
    } finally {
      server.signal('SIGCONT');
    }
  });
});
