import { describeSettings, loadSettingsOrExit } from '#config';
import { isFleetMember, PinoLogger, run, superviseFleet } from '#lifecycle';

const { settings, warnings, effective } = loadSettingsOrExit();
const logger = new PinoLogger(settings.logLevel);
const isOneOfSeveral = isFleetMember(settings);
if (!isOneOfSeveral) {
  for (const line of describeSettings(effective)) logger.log(line, 'Settings');
  for (const line of warnings) logger.warn(line, 'Settings');
}
if (settings.apiProcesses > 1 && !isOneOfSeveral) superviseFleet(settings, logger);
else await run(settings, logger, async () => (await import('./app.js')).createApp(settings, logger));
