import { connect as connectSocket, type Socket } from 'node:net';
import { connect as connectEncrypted, type TLSSocket } from 'node:tls';
import { AbstractConnector, type Cluster, Command, Redis, type RedisOptions } from 'ioredis';

interface Address {
  readonly host: string;
  readonly port: number;
}

/** A closed socket that does not end within this time is destroyed. The driver's default. */
const DISCONNECT_TIMEOUT_MS = 2000;

/**
 * One connection, to the primary that owns the key's slot. At each attempt it asks anew who that is: the node that answered MOVED last, else the slot
 * map of `cluster`, which is brought up to date with each further attempt, else one of `startupNodes` in turn, which will name the owner. So it follows
 * failovers and moved slots. MOVED rejects the command and leads to the new owner; ASK (the key is on its way) rejects it and leads nowhere.
 */
export function connectToOwner(
  cluster: Cluster,
  key: string,
  startupNodes: readonly Address[],
  options: RedisOptions,
): Redis {
  const owner = new SlotOwner(cluster, key, startupNodes);
  class OwnerConnector extends AbstractConnector {
    constructor() {
      super(DISCONNECT_TIMEOUT_MS);
    }

    override connect(): Promise<Socket | TLSSocket> {
      this.connecting = true;
      const address = { ...owner.next() };
      const stream =
        options.tls === undefined ? connectSocket(address) : connectEncrypted({ ...options.tls, ...address });
      stream.once('error', (error: Error) => {
        this.firstError = error;
      });
      this.stream = stream;
      return Promise.resolve(stream);
    }
  }
  return new Redis({
    ...options,
    Connector: OwnerConnector,
    // `1`: without sending again.
    reconnectOnError: (error) => (owner.isRedirectedBy(error) ? 1 : (options.reconnectOnError?.(error) ?? false)),
  });
}

class SlotOwner {
  private readonly slot: number;
  private redirectedTo: Address | undefined;
  private current: Address | undefined;
  private attempts = 0;

  constructor(
    private readonly cluster: Cluster,
    key: string,
    private readonly startupNodes: readonly Address[],
  ) {
    this.slot = new Command('get', [key]).getSlot();
  }

  next(): Address {
    this.current = this.redirectedTo ?? this.fromMap() ?? this.startupNodes[this.attempts % this.startupNodes.length];
    this.redirectedTo = undefined;
    this.attempts += 1;
    if (this.current === undefined) throw new TypeError('no node of the cluster is given');
    return this.current;
  }

  /** An answer without a host means the host that answered. */
  isRedirectedBy(error: Error): boolean {
    const [word, , place] = error.message.split(' ');
    if (word !== 'MOVED' || place === undefined) return false;
    const address = addressOf(place);
    this.redirectedTo = { host: address.host || (this.current?.host ?? ''), port: address.port };
    return true;
  }

  private fromMap(): Address | undefined {
    // Whoever comes again did not find the owner where the map said.
    if (this.attempts > 0 && this.cluster.status === 'ready') this.cluster.refreshSlotsCache();
    const primary = this.cluster.slots[this.slot]?.[0];
    return primary === undefined ? undefined : addressOf(primary);
  }
}

function addressOf(place: string): Address {
  const colon = place.lastIndexOf(':');
  return { host: place.slice(0, colon), port: Number(place.slice(colon + 1)) };
}
