import { type ArgumentMetadata, Injectable, ValidationPipe } from '@nestjs/common';
import type { ValidationError } from 'class-validator';
import { type FieldProblem, invalidArgument } from './problem.js';

const MAX_NAMED_FIELDS = 50;

/**
 * Checks bodies and queries against their DTO class: unknown fields are refused, nothing is converted. Every bad field of a body is named by a
 * JSON pointer, every bad query parameter by its name.
 */
@Injectable()
export class DtoPipe extends ValidationPipe {
  constructor() {
    super({
      whitelist: true,
      forbidNonWhitelisted: true,
      forbidUnknownValues: true,
      transform: true,
      transformOptions: { enableImplicitConversion: false, exposeUnsetFields: false },
      stopAtFirstError: false,
    });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    if (metadata.type === 'custom' || !this.toValidate(metadata)) return value;
    if (metadata.type === 'body') requirePlainObject(value);
    try {
      return (await super.transform(value, metadata)) as unknown;
    } catch (error) {
      if (error instanceof FieldsRefused) throw invalidArgument(...fieldProblems(error.errors, metadata.type));
      throw error;
    }
  }

  override createExceptionFactory(): (errors?: ValidationError[]) => unknown {
    return (errors = []) => new FieldsRefused(errors);
  }
}

/** Carries the findings of the validator to `transform`, which knows whether a body or a query was checked. */
class FieldsRefused extends Error {
  constructor(readonly errors: readonly ValidationError[]) {
    super('fields refused');
  }
}

function requirePlainObject(value: unknown): void {
  if (value !== undefined && (value === null || typeof value !== 'object' || Array.isArray(value)))
    throw invalidArgument({ pointer: '', detail: 'the body must be a JSON object' });
}

function fieldProblems(errors: readonly ValidationError[], type: ArgumentMetadata['type']): FieldProblem[] {
  const found: FieldProblem[] = [];
  collect(errors, '', (path, detail) => {
    if (found.length >= MAX_NAMED_FIELDS) return;
    found.push(type === 'body' ? { pointer: path, detail } : { parameter: path.slice(1), detail });
  });
  return found;
}

function collect(
  errors: readonly ValidationError[],
  parent: string,
  found: (path: string, detail: string) => void,
): void {
  for (const error of errors) {
    const path = `${parent}/${error.property.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    for (const [ruleName, detail] of Object.entries(error.constraints ?? {}))
      found(path, ruleName === 'whitelistValidation' ? `${error.property.slice(0, 100)} is not a known field` : detail);
    collect(error.children ?? [], path, found);
  }
}
