import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One text of a built file, and what it becomes. The text must stand there exactly once. */
export interface Patch {
  /** Below dist. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A safeguard taken away, and the scenario that must notice. */
export interface Mutation {
  readonly name: string;
  readonly patches: readonly Patch[];
  /** The scenario that must go red. */
  readonly scenario: string;
  /** What it must find: a crash of the patched product would be no proof. */
  readonly finds: RegExp;
}

const REGISTER = 'libs/sale-register/src';
const ORDERS = 'libs/orders/src';
const CONSUMER = 'libs/stream-consumer/src';

/** Each safeguard of the promises, removed one at a time. */
export const mutations: readonly Mutation[] = [
  {
    name: 'one order per buyer: admission does not look at the mark',
    patches: [
      {
        file: `${REGISTER}/scripts/admit.lua`,
        find: 'local held = marks[i] or buyers[user]',
        replace: 'local held = nil',
      },
    ],
    scenario: 'F39',
    finds: /100 clicks: .* orders named/,
  },
  {
    name: 'the undo: a refused write leaves the earlier ones of its call',
    patches: [
      {
        file: `${REGISTER}/scripts/admit.lua`,
        find: 'local function undo()\n',
        replace: 'local function undo()\n  if true then return { REFUSED_WRITE } end\n',
      },
    ],
    scenario: 'F4',
    finds: /I2 accepted although|I4 |I6 |I7 |not drained/,
  },
  {
    name: 'the epoch: admission does not look whether the data is what was reconciled',
    patches: [
      {
        file: `${REGISTER}/scripts/admit.lua`,
        find: "if call('GET', KEYS[1]) ~= history then",
        replace: 'if false then',
      },
    ],
    scenario: 'F36',
    finds: /I2 accepted although|I3 |I4 /,
  },
  {
    name: 'the barrier: WAIT is sent, and its answer not looked at',
    patches: [
      {
        file: `${REGISTER}/admission.js`,
        find: 'confirmed: wait !== undefined && wait[0] === null && Number(wait[1]) >= 1',
        replace: 'confirmed: true',
      },
    ],
    scenario: 'F11',
    finds: /I2 accepted orders are lost/,
  },
  {
    name: 'the condition of a release: given back although the mark holds another order',
    patches: [
      {
        file: `${REGISTER}/scripts/release.lua`,
        find: 'if held ~= ARGV[2] then',
        replace: 'if not held then',
      },
    ],
    scenario: 'F25',
    finds: /I4 |I6 |not drained/,
  },
  {
    name: 'commit before acknowledgement: entries are acknowledged when they are handed out',
    patches: [
      {
        file: `${CONSUMER}/group-reader.js`,
        find: "return this.read([...block, 'COUNT', count], '>');",
        replace: "return this.read([...block, 'NOACK', 'COUNT', count], '>');",
      },
    ],
    scenario: 'F20',
    finds: /I2 accepted orders are lost|I4 marks without row|not drained/,
  },
  {
    name: "the claim of dead consumers' entries",
    patches: [
      {
        file: `${CONSUMER}/partition-reader.js`,
        find: 'const claim = await group.claimIdle(cursor, claimMinIdleMs, batchSize);',
        replace: "const claim = { cursor: '0-0', entries: [], vanished: [] };",
      },
    ],
    scenario: 'F20',
    finds: /I2 accepted orders are lost|I4 marks without row|not drained/,
  },
  {
    name: 'idempotent insert: an order that is sent again does not find itself (ON CONFLICT, look-up by id)',
    patches: [
      {
        file: `${ORDERS}/order-statements.js`,
        find: "text: storeOrders('ON CONFLICT DO NOTHING')",
        replace: "text: storeOrders('')",
      },
      {
        file: `${ORDERS}/standing.js`,
        find: 'if (row.order_user_id !== null) {',
        replace: 'if (false) {',
      },
    ],
    scenario: 'F19',
    finds: /I4 |I6 |not drained/,
  },
  {
    name: 'the guarded stock update, and the CHECK behind it',
    patches: [
      {
        file: `${ORDERS}/order-statements.js`,
        find: ' AND v.stock >= l.units',
        replace: '',
      },
      {
        file: 'libs/database/src/migrations/0001-create-vouchers.js',
        find: 'NOT NULL CHECK (stock >= 0)',
        replace: 'NOT NULL',
      },
    ],
    scenario: 'F45',
    finds: /I1 oversold/,
  },
  {
    name: 'the fence: a batch read before the loss is stored after it',
    patches: [
      {
        file: `${ORDERS}/order-transaction.js`,
        find: 'if (row.epoch_number !== String(epochNumber)) {',
        replace: 'if (false) {',
      },
      {
        file: `${ORDERS}/order-statements.js`,
        find: 'WHERE (SELECT epoch_number FROM tb_partition WHERE partition_id = $1) = $2::bigint\n',
        replace: 'WHERE $2::bigint IS NOT NULL\n',
      },
    ],
    scenario: 'F41',
    finds: /I2 accepted although|I4 |I6 /,
  },
  {
    name: 'record before release: a discarded order is given back without a record',
    patches: [
      {
        file: 'libs/dead-letters/src/dead-letter.service.js',
        find: "const result = await this.orders.rejectOrder(letter.partition, order, 'DISCARDED', cause);",
        replace: "const result = { kind: 'REJECTED', reason: 'DISCARDED' };",
      },
    ],
    scenario: 'F42',
    finds: /I2 accepted orders are lost|I4 |I6 /,
  },
];

/** The text with the patch applied. @throws Error where what is to be replaced does not stand there exactly once */
export function applyPatch(text: string, { file, find, replace }: Patch): string {
  const times = text.split(find).length - 1;
  if (times !== 1) throw new Error(`${file}: the text to be replaced stands there ${times} times, not once: ${find}`);
  return text.replace(find, () => replace);
}

/** A copy of the built product without one safeguard, in a temporary folder. */
export function mutatedCopy(root: string, patches: readonly Patch[]): { root: string; remove: () => void } {
  const copy = mkdtempSync(join(tmpdir(), 'flash-sale-mutation-'));
  const atExit = () => rmSync(copy, { recursive: true, force: true });
  process.once('exit', atExit);
  const remove = () => {
    atExit();
    process.removeListener('exit', atExit);
  };
  try {
    cpSync(join(root, 'dist'), join(copy, 'dist'), { recursive: true });
    cpSync(join(root, 'package.json'), join(copy, 'package.json'));
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const patch of patches) {
      const file = join(copy, 'dist', patch.file);
      writeFileSync(file, applyPatch(readFileSync(file, 'utf8'), patch));
    }
    return { root: copy, remove };
  } catch (error) {
    remove();
    throw error;
  }
}
