export { DeadLetterService, type DiscardOutcome, type RedriveResult } from './dead-letter.service.js';
export { DeadLettersModule } from './dead-letters.module.js';
export type { DeadLetterPage, DeadLetterView } from './dead-letter.view.js';
