export * from './canonical-id.js';
export * from './entry-id.js';
export * from './order-codec.js';
export * from './order-entry.js';
