/** A step that could not be done, told so that a person can act on it: what failed, why, and the next command. */
export class StartFailure extends Error {
  /** @param {{ what: string, why: string, next: string, log?: string, cause?: unknown }} told */
  constructor({ what, why, next, log, cause }) {
    super(what, { cause });
    this.name = 'StartFailure';
    this.what = what;
    this.why = why;
    this.next = next;
    this.log = log;
  }
}

/** Work that was given up because the person asked to stop. No failure. */
export class Interrupted extends Error {
  constructor() {
    super('interrupted');
    this.name = 'Interrupted';
  }
}

/**
 * Any error as a StartFailure: system errors that people can mend (no space, no permission) get their remedy, the rest stay what they are.
 * @param {unknown} error
 * @param {string} what the step that failed, as the start of a sentence: "Starting Redis"
 * @returns {StartFailure}
 */
export function toStartFailure(error, what) {
  if (error instanceof StartFailure) return error;
  const { code, path, message } = /** @type {NodeJS.ErrnoException} */ (
    error instanceof Error ? error : { message: String(error) }
  );
  const next = remedy(code, path) ?? 'Run it again with LOG_LEVEL=debug to see where it comes from.';
  return new StartFailure({ what: `${what} failed`, why: message, next, cause: error });
}

/**
 * @param {string | undefined} code
 * @param {string | undefined} path
 */
function remedy(code, path) {
  const place = path === undefined ? 'the disk of this folder' : path;
  if (code === 'ENOSPC' || code === 'EDQUOT') return `Free some space on ${place} (df -h), then run it again.`;
  if (code === 'EACCES' || code === 'EPERM') {
    return `Give your user the right to ${place} (ls -l), or run it as the user who owns it.`;
  }
  if (code === 'EROFS') return `Clone the repository to a place that can be written; ${place} is read-only.`;
  if (code === 'EMFILE' || code === 'ENFILE')
    return 'Raise the limit of open files (ulimit -n 4096), then run it again.';
  return undefined;
}

/**
 * The lines in which a failure is told. The stack only with LOG_LEVEL=debug or trace.
 * @param {unknown} error
 * @param {string} command as the person typed it: "npm start"
 * @param {string | undefined} logLevel
 * @returns {string}
 */
export function tellFailure(error, command, logLevel) {
  const failure = toStartFailure(error, command);
  const lines = [`${command} stopped: ${failure.what}.`, `  why:  ${indented(failure.why)}`];
  lines.push(`  next: ${indented(failure.next)}`);
  if (failure.log !== undefined) lines.push(`  log:  ${failure.log}`);
  if (logLevel === 'debug' || logLevel === 'trace') lines.push(String(stackOf(failure)));
  return lines.join('\n');
}

/** @param {string} text */
function indented(text) {
  return text.trim().split('\n').join('\n        ');
}

/** @param {StartFailure} failure */
function stackOf(failure) {
  return failure.cause instanceof Error ? failure.cause.stack : failure.stack;
}
