import { rmSync } from 'node:fs';
import { Interrupted } from '../setup/start-failure.mjs';
import { SupervisedService } from './supervised-service.mjs';

/** The running parts of the product, and the order in which they end. */
export class ProductParts {
  /**
   * @param {object} options
   * @param {number} options.limitMs of stop()
   * @param {string | undefined} options.temporaryDir removed by stop()
   * @param {((processes: { name: string, pid: number }[]) => void) | undefined} options.onProcesses
   * @param {((line: string) => void) | undefined} options.onEvent
   */
  constructor({ limitMs, temporaryDir, onProcesses = () => undefined, onEvent = () => undefined }) {
    this.limitMs = limitMs;
    this.onProcesses = onProcesses;
    this.onEvent = onEvent;
    this.temporaryDir = temporaryDir;
    /** @type {SupervisedService[]} */
    this.stores = [];
    /** @type {SupervisedService[]} */
    this.apis = [];
    /** @type {Promise<void> | undefined} */
    this.stopped = undefined;
    /** @type {(reason: string) => void} */
    this.fall = () => undefined;
    /** @type {Promise<string>} */
    this.fallen = new Promise((resolve) => (this.fall = resolve));
  }

  /** What of the limit an API process may use; the rest is for the stores. */
  get apiLimitMs() {
    return Math.max(this.limitMs - 2000, Math.floor(this.limitMs * 0.7));
  }

  /**
   * Starts a store; it is started again when it ends by itself.
   * @param {Omit<ConstructorParameters<typeof SupervisedService>[0], 'onEvent' | 'onSpawn'>} service
   */
  addStore(service) {
    return this.add(this.stores, service);
  }

  /**
   * Starts a process of ours; its unexpected end is the end of the product, unless it is to be started again.
   * @param {Omit<ConstructorParameters<typeof SupervisedService>[0], 'onEvent' | 'onSpawn'>} service
   */
  addApi(service) {
    return this.add(this.apis, { restarts: false, ...service });
  }

  /**
   * @param {SupervisedService[]} list
   * @param {Omit<ConstructorParameters<typeof SupervisedService>[0], 'onEvent' | 'onSpawn'>} options
   */
  async add(list, options) {
    if (this.stopped !== undefined) throw new Interrupted();
    const onSpawn = () => this.onProcesses(this.processes());
    const service = new SupervisedService({ ...options, onEvent: this.onEvent, onSpawn });
    list.push(service);
    await service.start();
    void service.fallen.then(this.fall);
  }

  processes() {
    return [...this.stores, ...this.apis].flatMap(({ name, pid, isUp }) =>
      pid === undefined ? [] : [{ name, pid, isUp }],
    );
  }

  stop() {
    this.stopped ??= this.endAll();
    return this.stopped;
  }

  async endAll() {
    await Promise.all(this.apis.map((api) => api.stop()));
    await Promise.all(this.stores.map((store) => store.stop()));
    if (this.temporaryDir !== undefined) rmSync(this.temporaryDir, { recursive: true, force: true });
  }

  kill() {
    for (const service of [...this.apis, ...this.stores]) service.kill();
  }
}
