import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsOptional, Matches, registerDecorator } from 'class-validator';
import { type DeadLetterPage, type DeadLetterView, parseLetterId } from './dead-letter.view.js';

export const LETTERS_LIMIT = { least: 1, most: 100, usual: 50 } as const;

function IsLetterId(message: string): PropertyDecorator {
  return (target, propertyName) =>
    registerDecorator({
      name: 'isLetterId',
      target: target.constructor,
      propertyName: propertyName as string,
      options: { message },
      validator: { validate: (value: unknown) => parseLetterId(value) !== undefined },
    });
}

/** Query of GET /v1/admin/dead-letters. */
export class ListDeadLettersQuery {
  @ApiPropertyOptional({ type: 'integer', minimum: 1, maximum: 100, default: LETTERS_LIMIT.usual })
  @IsOptional()
  @Matches(/^([1-9][0-9]?|100)$/, { message: 'limit must be a whole number, 1 to 100' })
  limit?: string;

  @ApiPropertyOptional({ description: 'nextCursor of the page before' })
  @IsOptional()
  @IsLetterId('cursor must be the nextCursor of a page')
  cursor?: string;
}

/** OpenAPI: a dead letter. */
export class DeadLetterModel implements DeadLetterView {
  @ApiProperty({ example: '0-1764500000000-0', description: '<partition>-<ms>-<seq>' })
  id!: string;

  @ApiProperty({ type: 'integer', example: 0 })
  partition!: number;

  @ApiProperty({ example: 'MALFORMED: field "userId" is missing' })
  cause!: string;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'string' }, example: { voucherId: '17', id: '42' } })
  fields!: Record<string, string>;

  @ApiProperty({ type: 'integer', example: 1, description: 'How often the entry was handed to a consumer' })
  deliveries!: number;

  @ApiProperty({ format: 'date-time', example: '2026-11-30T12:00:00.000Z' })
  firstSeenTime!: string;
}

/** OpenAPI: one page of dead letters. */
export class DeadLetterPageModel implements DeadLetterPage {
  @ApiProperty({ type: [DeadLetterModel] })
  items!: DeadLetterModel[];

  @ApiPropertyOptional({ description: 'Absent on the last page' })
  nextCursor?: string;
}

/** OpenAPI: what a decision about a letter came to. */
export class DeadLetterDecisionModel {
  @ApiProperty({ example: '0-1764500000000-0' })
  id!: string;

  @ApiProperty({
    enum: ['REDRIVEN', 'DISCARDED', 'ALREADY_STORED', 'ALREADY_CANCELLED', 'ALREADY_REJECTED'],
    description: 'ALREADY_...: the database knew the order; the letter was only taken off the list',
  })
  outcome!: string;
}
