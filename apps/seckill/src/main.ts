import { describeSettings, loadSettingsOrExit } from '#config';
import { PinoLogger, run } from '#lifecycle';

const { settings, warnings, effective } = loadSettingsOrExit();
const logger = new PinoLogger(settings.logLevel);
for (const line of describeSettings(effective)) logger.log(line, 'Settings');
for (const line of warnings) logger.warn(line, 'Settings');
await run(settings, logger, async () => (await import('./app.js')).createApp(settings, logger));
