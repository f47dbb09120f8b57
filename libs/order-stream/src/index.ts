export * from './order-entry.js';
