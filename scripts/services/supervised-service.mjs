import { endProcess, identify } from './process-identity.mjs';

const RESTARTS_PER_MINUTE = 5;

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

/**
 * A service process that is started again, with growing pauses, when it ends without being told to; at most five times a minute, or as often as said.
 * `fallen` resolves with the reason when it is given up.
 */
export class SupervisedService {
  /**
   * @param {object} options
   * @param {string} options.name
   * @param {(onSpawn: (child: ChildProcess) => void) => Promise<ChildProcess>} options.start resolves when the service is ready; hands over the
   *   process as soon as there is one, so that a stop reaches it before it is ready
   * @param {{ signal: NodeJS.Signals, limitMs: number }[]} options.stopSteps the signals that end it, in turn; SIGKILL follows the last
   * @param {boolean} [options.restarts] false: it is given up at its first unexpected end
   * @param {number} [options.restartsPerMinute]
   * @param {number} [options.restartPauseMs] the same pause before each new start, instead of growing ones
   * @param {(line: string) => void} [options.onEvent] hears of unexpected ends and new starts
   * @param {() => void} [options.onSpawn] hears of each new process; `pid` is known then
   */
  constructor({
    name,
    start,
    stopSteps,
    restarts = true,
    restartsPerMinute = RESTARTS_PER_MINUTE,
    restartPauseMs = undefined,
    onEvent = () => undefined,
    onSpawn = () => undefined,
  }) {
    this.name = name;
    this.begin = start;
    this.stopSteps = stopSteps;
    this.restarts = restarts;
    this.restartsPerMinute = restartsPerMinute;
    this.restartPauseMs = restartPauseMs;
    /** Ready, and not ended since. */
    this.isUp = false;
    this.onEvent = onEvent;
    this.onSpawn = onSpawn;
    this.stopping = false;
    /** @type {ChildProcess | undefined} */
    this.child = undefined;
    /** @type {Promise<void>} */
    this.restarting = Promise.resolve();
    /** @type {number[]} */
    this.endedAtMs = [];
    /** @type {(reason: string) => void} */
    this.fall = () => undefined;
    /** @type {Promise<string>} */
    this.fallen = new Promise((resolve) => (this.fall = resolve));
  }

  get pid() {
    return this.child?.pid;
  }

  /** Starts the process; rejects where it cannot be started. */
  async start() {
    this.adopt(await this.spawn());
  }

  spawn() {
    return this.begin((child) => {
      this.child = child;
      if (this.stopping) child.kill('SIGKILL');
      else this.onSpawn();
    });
  }

  /** @param {ChildProcess} child */
  adopt(child) {
    this.child = child;
    this.isUp = true;
    const ended = () => {
      this.isUp = false;
      if (this.stopping || this.child !== child) return;
      this.child = undefined;
      this.restarting = this.afterEnd(child);
    };
    if (child.exitCode !== null || child.signalCode !== null) ended();
    else child.once('exit', ended);
  }

  /** @param {ChildProcess} child */
  async afterEnd(child) {
    let reason = `${this.name} (pid ${child.pid}) ended by itself: ${child.signalCode ?? `exit code ${child.exitCode}`}`;
    while (!this.stopping) {
      const nowMs = Date.now();
      this.endedAtMs = [...this.endedAtMs.filter((atMs) => nowMs - atMs < 60_000), nowMs];
      const tries = this.endedAtMs.length;
      if (!this.restarts || tries > this.restartsPerMinute) return this.fall(reason);
      this.onEvent(`${reason}; it is started again`);
      await new Promise((resolve) => setTimeout(resolve, this.restartPauseMs ?? 100 * 2 ** tries));
      if (this.stopping) return;
      try {
        const next = await this.spawn();
        this.adopt(next);
        return this.onEvent(`${this.name} runs again (pid ${next.pid})`);
      } catch (error) {
        this.child = undefined;
        reason = `${this.name} could not be started again: ${error instanceof Error ? error.message : String(error)}`;
      }
    }
  }

  /** Ends the process and resolves when it is gone; harmless when it never ran or was stopped before. */
  async stop() {
    this.stopping = true;
    const identity = identify(this.child?.pid);
    if (identity !== undefined) await endProcess(identity, this.stopSteps);
    await this.restarting;
    this.child = undefined;
  }

  /** Kills what is left, at once. */
  kill() {
    this.stopping = true;
    this.child?.kill('SIGKILL');
  }
}
