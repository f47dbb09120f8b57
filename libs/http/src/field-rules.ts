import { registerDecorator, type ValidationOptions } from 'class-validator';
import { ID_RULE, isId } from './ids.js';
import { parseZonedIsoTime } from './iso-time.js';

function rule(name: string, message: string, holds: (value: unknown) => boolean, options?: ValidationOptions) {
  return (target: object, propertyName: string | symbol): void => {
    registerDecorator({
      name,
      target: target.constructor,
      propertyName: propertyName as string,
      options: { message: `$property must be ${message}`, ...options },
      validator: { validate: holds },
    });
  };
}

/** DTO rule: a canonical id string (see `isId`). */
export function IsCanonicalId(options?: ValidationOptions): PropertyDecorator {
  return rule('isCanonicalId', ID_RULE, isId, options);
}

/** DTO rule: an ISO 8601 time with zone (see `parseZonedIsoTime`). The field stays the string that was sent. */
export function IsZonedIsoTime(options?: ValidationOptions): PropertyDecorator {
  const message = 'an ISO 8601 time with zone, like 2026-11-30T12:00:00Z';
  return rule('isZonedIsoTime', message, (value) => parseZonedIsoTime(value) !== undefined, options);
}

/** DTO rule: a JSON whole number within the limits, both included; strings that look like numbers are refused. */
export function IsWholeNumber(min: number, max: number, options?: ValidationOptions): PropertyDecorator {
  const holds = (value: unknown): boolean =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
  return rule('isWholeNumber', `a whole number, ${min} to ${max}`, holds, options);
}
