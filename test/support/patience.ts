import { vi } from 'vitest';

/** How long a test waits for a state when it does not say otherwise. A busy machine is slow, not wrong. */
const PATIENCE_MS = 20_000;

const waitFor = vi.waitFor;
vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options });
