import type { Step } from './explorer.js';
import { createOrders, rejectOrder } from './database-transactions.js';
import {
  acknowledge,
  admit,
  append,
  buyerOf,
  deadLetter,
  isSelling,
  oldestPending,
  release,
  trim,
} from './register-scripts.js';
import {
  cloneWorld,
  having,
  NONE,
  type Configuration,
  type Consumer,
  type Entry,
  type Item,
  type Todo,
  type World,
} from './world.js';

type WorldStep = Step<World>;

/** The steps of every consumer: read, claim, store, and what follows for each entry in hand; and its death. */
export function consumerSteps(config: Configuration, world: World): WorldStep[] {
  const steps: WorldStep[] = [];
  world.consumers.forEach((consumer, index) => {
    const act = (label: string, change: (next: World, self: Consumer) => void, fault = false) => {
      const next = cloneWorld(world);
      const self = { ...consumer };
      next.consumers = next.consumers.with(index, self);
      change(next, self);
      steps.push({ label: `consumer ${index}: ${label}`, next, fault });
    };
    if (consumer.oldestPending !== undefined) act('trims', finishTrim);
    else if (consumer.items.length === 0) idleSteps(config, world, act);
    else workingStep(config, world, consumer, act);
    const busy = consumer.items.length > 0 || consumer.oldestPending !== undefined;
    if (busy && world.left.crashes > 0) act('dies', die, true);
  });
  return steps;
}

type Act = (label: string, change: (next: World, self: Consumer) => void, fault?: boolean) => void;

function die(next: World, self: Consumer): void {
  next.left = { ...next.left, crashes: next.left.crashes - 1 };
  self.items = [];
  self.oldestPending = undefined;
}

function idleSteps(config: Configuration, world: World, act: Act): void {
  const { stream } = world.redis;
  if (stream.some((entry) => entry.state === 'NEW')) {
    act('reads the group', (next, self) => {
      self.items = take(next, (entry) => entry.state === 'NEW');
      if (config.switches.has('ack-before-commit')) {
        for (const item of self.items) acknowledge(next, item.id);
        trim(next, oldestPending(next));
      }
    });
  }
  const inHand = new Set(world.consumers.flatMap((other) => other.items.map((item) => item.id)));
  const waiting = stream.filter((entry) => entry.state === 'PENDING' || entry.state === 'GONE');
  if (waiting.some((entry) => !inHand.has(entry.id))) {
    act('claims from the dead', (next, self) => {
      self.items = take(next, (entry) => entry.state !== 'NEW' && entry.state !== 'ACKED' && !inHand.has(entry.id));
    });
  }
  if (world.left.steals > 0 && waiting.some((entry) => inHand.has(entry.id))) {
    act(
      'claims from the slow',
      (next, self) => {
        next.left = { ...next.left, steals: next.left.steals - 1 };
        self.items = take(next, (entry) => entry.state === 'PENDING' || entry.state === 'GONE');
      },
      true,
    );
  }
}

/** Hands entries out: they are pending from then on. One that was trimmed while pending is only taken off the pending list. */
function take(next: World, wanted: (entry: Entry) => boolean): Item[] {
  const taken = next.redis.stream.filter((entry) => wanted(entry) && entry.state !== 'GONE');
  next.redis.stream = next.redis.stream.flatMap((entry) => {
    if (!wanted(entry)) return [entry];
    return entry.state === 'GONE' ? [] : [{ ...entry, state: 'PENDING' as const }];
  });
  return taken.map(({ id, order }) => ({ id, order, todo: 'STORE' }));
}

const done = (self: Consumer, item: Item): void => {
  self.items = self.items.filter((other) => other !== item);
};

const turn = (self: Consumer, item: Item, todo: Todo): void => {
  self.items = self.items.map((other) => (other === item ? { ...item, todo } : other));
};

/** What a consumer with entries in hand does next: the kinds of work in a fixed order, one script or transaction at a time. */
function workingStep(config: Configuration, world: World, consumer: Consumer, act: Act): void {
  if (consumer.items.some((item) => item.todo === 'STORE')) {
    act('stores its batch', (next, self) => createOrders(config, next, self));
    if (config.switches.has('number-read-after-entries') && !consumer.fresh)
      act('reads the epoch number, late', (_next, self) => (self.fresh = true));
    return;
  }
  const first = consumer.items.find((item) => item.todo !== 'ACK');
  if (first === undefined) return act('acknowledges and trims', (next, self) => acknowledgeAll(config, next, self));
  const one = (label: string, change: (next: World, self: Consumer, item: Item) => void) =>
    act(`${label} order ${first.order}`, (next, self) => change(next, self, first));
  switch (first.todo) {
    case 'REJECT':
      return one('records the rejection of', (next, self, item) => {
        turn(self, item, rejectOrder(config, next, item.order) ? 'RELEASE' : 'ACK');
      });
    case 'RELEASE':
      return one('releases', (next, self, item) => {
        release(config, next, item.order);
        turn(self, item, 'ACK');
      });
    case 'RELEASE_FIRST':
      return one('releases, before any record,', (next, self, item) => {
        release(config, next, item.order);
        turn(self, item, 'REJECT');
      });
    case 'DEAD_LETTER':
      return one('writes the dead letter of', (next, self, item) => {
        deadLetter(config, next, item.id, item.order);
        done(self, item);
      });
    case 'FIND':
      return act('looks for the entries of its batch', (next, self) => {
        self.items = self.items.map((item) => (item.todo === 'FIND' ? { ...item, todo: sort(next, item) } : item));
      });
    case 'READMIT':
      if (isSelling(config, world)) one('readmits', (next, self, item) => readmit(config, next, self, item));
      else if (world.left.givingUps > 0)
        act(`gives up order ${first.order}`, (next, self) => giveUp(next, self, first), true);
      return;
    case 'STORE':
    case 'ACK':
      return;
  }
}

/** An entry that still stands was read, so to speak, again: under the number that the refusal named. */
function sort(world: World, item: Item): Todo {
  const stands = world.redis.stream.some((entry) => entry.id === item.id && entry.state !== 'GONE');
  return stands ? 'STORE' : 'READMIT';
}

/** readmit.lua: an order in hand whose entry was lost takes mark and unit again if they are free; else it lost its right. */
function readmit(config: Configuration, next: World, self: Consumer, item: Item): void {
  const held = next.redis.marks[buyerOf(config, item.order)] === item.order;
  if (held) append(next, item.order);
  if (held || admit(config, next, item.order)) done(self, item);
  else turn(self, item, 'REJECT');
}

/** The process ends and the register is closed: what it alone may know of is rejected, so that it has an end. */
function giveUp(next: World, self: Consumer, item: Item): void {
  next.left = { ...next.left, givingUps: next.left.givingUps - 1 };
  next.excused = having(next.excused, item.order);
  turn(self, item, 'REJECT');
}

function acknowledgeAll(config: Configuration, next: World, self: Consumer): void {
  for (const item of self.items) acknowledge(next, item.id);
  self.items = [];
  if (config.switches.has('trim-in-two-calls')) self.oldestPending = oldestPending(next);
  else trim(next, oldestPending(next));
}

function finishTrim(next: World, self: Consumer): void {
  trim(next, self.oldestPending ?? NONE);
  self.oldestPending = undefined;
}
