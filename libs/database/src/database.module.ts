import { Module } from '@nestjs/common';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import { DataSource, type EntitySchema } from 'typeorm';
import { SETTINGS, type Settings } from '#config';
import type { DatabaseSettings } from './connection-policy.js';
import { ConnectionWatch } from './connection-watch.js';
import { dataSourceOptions } from './data-source-options.js';
import { Database } from './database.js';

@Module({ providers: [ConnectionWatch], exports: [ConnectionWatch] })
class ConnectionWatchModule {}

/**
 * Provides `Database` and TypeORM's DataSource. Entities are registered by the modules that own them, with `TypeOrmModule.forFeature([...])`.
 * Nothing waits for PostgreSQL: the application starts without it.
 */
@Module({
  imports: [
    ConnectionWatchModule,
    TypeOrmModule.forRootAsync({
      imports: [ConnectionWatchModule],
      inject: [SETTINGS, ConnectionWatch],
      useFactory: (settings: Settings, watch: ConnectionWatch) => ({
        ...dataSourceOptions(settings, watch),
        autoLoadEntities: true,
        manualInitialization: true,
      }),
    }),
  ],
  providers: [
    {
      provide: Database,
      inject: [getDataSourceToken(), SETTINGS, ConnectionWatch],
      useFactory: (dataSource: DataSource, settings: Settings, watch: ConnectionWatch) =>
        new Database(dataSource, settings, watch),
    },
  ],
  exports: [Database, TypeOrmModule],
})
export class DatabaseModule {}

/** A database without the framework, for scripts and tests. Starts connecting at once; close it with `onApplicationShutdown`. */
export function createDatabase(
  settings: DatabaseSettings,
  // eslint-disable-next-line @typescript-eslint/no-unsafe-function-type -- TypeORM's own type of an entity class
  entities: readonly (Function | EntitySchema)[] = [],
): Database {
  const watch = new ConnectionWatch();
  const dataSource = new DataSource({ ...dataSourceOptions(settings, watch), entities: [...entities] });
  const database = new Database(dataSource, settings, watch);
  database.onModuleInit();
  return database;
}
