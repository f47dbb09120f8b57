/** Tells the bench that this process serves. It ends with the bench, whatever becomes of that. */
export function tellReady(port: number): void {
  process.on('disconnect', () => process.exit(0));
  process.send?.({ port });
}

/** A setting that the bench gives. */
export function given(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not given`);
  return value;
}
