import { Counter, Gauge } from 'prom-client';

/** 1 in each process that listens: summed over a fleet it says how many there are. */
export const processes = new Gauge({
  name: 'seckill_processes',
  help: 'Listening processes of this instance whose figures are in this answer',
});

export const unhandledRejections = new Counter({
  name: 'seckill_unhandled_rejections_total',
  help: 'Promise rejections that nobody handled; each is a defect, logged with its stack.',
});

export const replacedProcesses = new Counter({
  name: 'seckill_processes_replaced_total',
  help: 'Processes of this instance that ended without being told to, or did not start, and were started again',
});

export const silentProcesses = new Counter({
  name: 'seckill_processes_silent_total',
  help: 'Answers to /metrics in which a process is missing because it did not tell its figures in time; its counts are the last known ones',
});
