import {
  Controller,
  Get,
  HttpCode,
  Injectable,
  Param,
  type PipeTransform,
  Post,
  Query,
  UseInterceptors,
} from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import { CurrentUser, type Identity, Roles } from '#auth';
import { AnswerInTimeInterceptor, ApiProblems, IgnoreBody, invalidArgument, ProblemException } from '#http';
import {
  DeadLetterDecisionModel,
  DeadLetterPageModel,
  LETTERS_LIMIT,
  ListDeadLettersQuery,
} from './dead-letter.dto.js';
import { DeadLetterService } from './dead-letter.service.js';
import { type DeadLetterKey, type DeadLetterPage, formatLetterId, parseLetterId } from './dead-letter.view.js';

const LETTER_ID = {
  name: 'id',
  schema: { type: 'string', pattern: '^[0-9]+-[0-9]+-[0-9]+$' },
  example: '0-1764500000000-0',
} as const;

/** Lets ids of dead letters through, parsed; anything else is INVALID_ARGUMENT. */
@Injectable()
export class LetterIdParam implements PipeTransform<unknown, DeadLetterKey> {
  transform(value: unknown): DeadLetterKey {
    const key = parseLetterId(value);
    if (key === undefined) throw invalidArgument({ parameter: 'id', detail: 'id must be <partition>-<ms>-<seq>' });
    return key;
  }
}

/** Entries of the order stream that were no orders: an administrator lists them, has them tried once more, or gives them up. */
@ApiTags('admin')
@Controller('v1/admin/dead-letters')
@Roles('admin')
@UseInterceptors(AnswerInTimeInterceptor)
export class DeadLettersController {
  constructor(private readonly letters: DeadLetterService) {}

  @Get()
  @ApiOperation({ operationId: 'listDeadLetters', summary: 'The dead letters of all partitions, oldest first' })
  @ApiOkResponse({ type: DeadLetterPageModel })
  list(@Query() query: ListDeadLettersQuery): Promise<DeadLetterPage> {
    const limit = query.limit === undefined ? LETTERS_LIMIT.usual : Number(query.limit);
    return this.letters.list(limit, query.cursor === undefined ? undefined : parseLetterId(query.cursor));
  }

  @Post(':id/redrive')
  @HttpCode(200)
  @IgnoreBody()
  @ApiOperation({
    operationId: 'redriveDeadLetter',
    summary: 'Try the order once more',
    description:
      'Appends the order to the stream again and removes the letter, in one step. A stored order is only taken off the list.',
  })
  @ApiParam(LETTER_ID)
  @ApiOkResponse({ type: DeadLetterDecisionModel })
  @ApiProblems('DEAD_LETTER_NOT_FOUND', 'DEAD_LETTER_NOT_REDRIVABLE', 'OUTCOME_UNKNOWN')
  async redrive(
    @CurrentUser() caller: Identity,
    @Param('id', LetterIdParam) key: DeadLetterKey,
  ): Promise<DeadLetterDecisionModel> {
    const outcome = await this.letters.redrive(key, `user:${caller.userId}`);
    if (outcome === 'NOT_FOUND') throw new ProblemException('DEAD_LETTER_NOT_FOUND');
    if (outcome === 'NOT_REDRIVABLE') throw new ProblemException('DEAD_LETTER_NOT_REDRIVABLE');
    return { id: formatLetterId(key), outcome };
  }

  @Post(':id/discard')
  @HttpCode(200)
  @IgnoreBody()
  @ApiOperation({
    operationId: 'discardDeadLetter',
    summary: 'Give the order up',
    description:
      'Records the order as rejected, gives its unit back, removes the letter. A stored order is only taken off the list.',
  })
  @ApiParam(LETTER_ID)
  @ApiOkResponse({ type: DeadLetterDecisionModel })
  @ApiProblems('DEAD_LETTER_NOT_FOUND', 'OUTCOME_UNKNOWN')
  async discard(
    @CurrentUser() caller: Identity,
    @Param('id', LetterIdParam) key: DeadLetterKey,
  ): Promise<DeadLetterDecisionModel> {
    const outcome = await this.letters.discard(key, `user:${caller.userId}`);
    if (outcome === 'NOT_FOUND') throw new ProblemException('DEAD_LETTER_NOT_FOUND');
    if (outcome === 'BUSY') throw new ProblemException('UNAVAILABLE');
    return { id: formatLetterId(key), outcome };
  }
}
