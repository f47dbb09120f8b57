import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';

/** Loaded into the API process (--import): SIGUSR2 begins a CPU profile, the next one ends it and writes it to PROFILE_FILE. */
const SAMPLE_INTERVAL_US = 200;
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_INTERVAL_US });
let isRunning = false;

process.on('SIGUSR2', () => void toggle());

async function toggle(): Promise<void> {
  isRunning = !isRunning;
  if (isRunning) return void (await session.post('Profiler.start'));
  const { profile } = await session.post('Profiler.stop');
  writeFileSync(process.env['PROFILE_FILE'] ?? 'api.cpuprofile', JSON.stringify(profile));
}
