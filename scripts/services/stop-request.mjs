const FORCE_AFTER_MS = 1000;

/**
 * Turns SIGINT, SIGTERM and SIGHUP into one request to stop. A terminal's Ctrl-C arrives twice at once (from the terminal and from npm), so a further
 * signal means "at once" only a second after the first.
 * @param {{ onForce: () => void }} options
 * @returns {{ signal: AbortSignal, requested: Promise<void> }}
 */
export function listenForStop({ onForce }) {
  const controller = new AbortController();
  let firstMs = 0;
  /** @type {Promise<void>} */
  const requested = new Promise((resolve) => {
    const hear = () => {
      if (firstMs === 0) {
        firstMs = Date.now();
        controller.abort();
        resolve();
      } else if (Date.now() - firstMs >= FORCE_AFTER_MS) {
        onForce();
      }
    };
    for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(name, hear);
  });
  return { signal: controller.signal, requested };
}
