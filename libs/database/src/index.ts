export { createDatabase, DatabaseModule } from './database.module.js';
export { Database, type DatabaseStatus } from './database.js';
export {
  classifyDatabaseError,
  DatabaseUnavailableError,
  sqlStateOf,
  TransactionRolledBackError,
  type DatabaseErrorKind,
} from './database-error.js';
export type { Session, Statement } from './session.js';
export type { EntityManager } from 'typeorm';
