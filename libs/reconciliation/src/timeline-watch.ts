import { Injectable } from '@nestjs/common';
import { RecordReader } from './record.reader.js';

/** Notices that the database went on from another point of its history: a failover to a replica that was behind, a restored backup. */
@Injectable()
export class TimelineWatch {
  private last: string | undefined;

  constructor(private readonly record: RecordReader) {}

  /** True where the timeline is another one than at the last call that could read it. The first call is false. @throws DatabaseUnavailableError */
  async moved(): Promise<boolean> {
    const timeline = await this.record.timeline();
    if (timeline === undefined) return false;
    const moved = this.last !== undefined && this.last !== timeline;
    this.last = timeline;
    return moved;
  }
}
