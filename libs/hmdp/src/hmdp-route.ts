import { applyDecorators, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { routeFacts } from '#http';
import { HmdpErrorFilter } from './hmdp-error.filter.js';

/** A controller that speaks hmdp's dialect: its errors come in the envelope, and it is no part of the documented API. */
export function HmdpRoutes(): ClassDecorator {
  return applyDecorators(routeFacts({ dialect: 'hmdp' }), UseFilters(HmdpErrorFilter), ApiExcludeController());
}
