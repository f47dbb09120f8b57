export * from './outcomes.js';
