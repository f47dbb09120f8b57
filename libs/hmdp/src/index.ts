export { HmdpModule } from './hmdp.module.js';
export { formatLocalTime, parseLocalTime } from './local-time.js';
export { CODE_LIFE_SECONDS, MAX_CODES, MAX_TRIES } from './login-codes.js';
export { LOGIN_LIFE_SECONDS } from './logins.js';
export { isPhone } from './phone.js';
