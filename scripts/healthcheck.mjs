/**
 * `node scripts/healthcheck.mjs [path]`: asks this container's own process. Exit code 0 where GET on the path (default /health/live) answers 200
 * within 3 s, else 1 with the reason. Needs no dependency, so that an image without a shell can use it.
 */
const LIMIT_MS = 3_000;
const path = process.argv[2] ?? '/health/live';
const port = process.env['PORT'] || '3000';

try {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(LIMIT_MS) });
  if (answer.status !== 200) throw new Error(`${answer.status} ${(await answer.text()).slice(0, 500)}`);
} catch (error) {
  process.stderr.write(`${path} on port ${port}: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
