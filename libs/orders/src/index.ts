export * from './order.types.js';
