import type { PoolClient, QueryResult, QueryResultRow } from 'pg';
import { toUnavailable } from './database-error.js';

/** A statement with a name is parsed once per connection and planned rarely; the text must never change under one name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** One connection, for as long as the work that was given it runs. All its statements go over this connection, in order. */
export class Session {
  constructor(private readonly client: PoolClient) {}

  /**
   * Runs one statement and answers its rows. bigint columns come as decimal strings, timestamptz as Date.
   * @throws DatabaseUnavailableError for everything that passes (`classifyDatabaseError`); the driver's error where the data was refused.
   */
  async query<Row extends QueryResultRow>(
    statement: string | Statement,
    values: readonly unknown[] = [],
  ): Promise<Row[]> {
    return (await this.execute<Row>(statement, values)).rows;
  }

  /** Like `query`; answers the whole result, with the command tag and the number of rows touched. */
  async execute<Row extends QueryResultRow>(
    statement: string | Statement,
    values: readonly unknown[] = [],
  ): Promise<QueryResult<Row>> {
    const config = typeof statement === 'string' ? { text: statement } : { name: statement.name, text: statement.text };
    try {
      return await this.client.query<Row>(values.length === 0 ? config : { ...config, values: values as unknown[] });
    } catch (error) {
      throw toUnavailable(error);
    }
  }
}
