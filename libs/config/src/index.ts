export { ConfigModule } from './config.module.js';
export { describeSettings, type EffectiveSetting } from './describe-settings.js';
export { type Environment, loadSettingsOrExit, type ReadOptions, readSettings, type SettingsResult } from './env.js';
export * from './settings.js';
