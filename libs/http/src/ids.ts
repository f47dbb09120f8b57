import { Injectable, type ArgumentMetadata, type PipeTransform } from '@nestjs/common';
import { invalidArgument } from './problem.js';

const LARGEST_ID = '9223372036854775807';

/** Whether the value is a canonical id: a decimal string without sign, blanks or leading zeros, 1..9223372036854775807. */
export function isId(value: unknown): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > LARGEST_ID.length) return false;
  if (value.charCodeAt(0) === 48) return false;
  for (let i = 0; i < value.length; i += 1) {
    const code = value.charCodeAt(i);
    if (code < 48 || code > 57) return false;
  }
  return value.length < LARGEST_ID.length || value <= LARGEST_ID;
}

export const ID_RULE = `a decimal id without sign, blanks or leading zeros, 1 to ${LARGEST_ID}`;

/** Lets canonical ids through as they are; anything else is INVALID_ARGUMENT naming the parameter. For `@Param('voucherId', IdParam)` and `@Query`. */
@Injectable()
export class IdParam implements PipeTransform<unknown, string> {
  transform(value: unknown, metadata: ArgumentMetadata): string {
    return requireId(value, metadata.data ?? 'id');
  }
}

/** The value where it is a canonical id; else throws INVALID_ARGUMENT naming the parameter. For handlers that take their parameters themselves. */
export function requireId(value: unknown, parameter: string): string {
  if (isId(value)) return value;
  throw invalidArgument({ parameter, detail: `${parameter} must be ${ID_RULE}` });
}
