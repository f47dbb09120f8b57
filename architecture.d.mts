export declare const importTable: Readonly<Record<string, readonly string[]>>;
export declare const driverOwners: Readonly<
  Record<string, { readonly libs: readonly string[]; readonly endings: readonly string[] }>
>;
