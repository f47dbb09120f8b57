import { describeSettings, loadSettingsOrExit } from '#config';
import { PinoLogger, run } from '#lifecycle';

/** Beside an API on the same machine. */
const DEFAULT_PORT = 3001;

const { settings, warnings, effective } = loadSettingsOrExit({ authRequired: false, defaultPort: DEFAULT_PORT });
const logger = new PinoLogger(settings.logLevel);
for (const line of describeSettings(effective)) logger.log(line, 'Settings');
for (const line of warnings) logger.warn(line, 'Settings');
await run(settings, logger, async () => (await import('./worker.js')).createWorker(settings, logger));
