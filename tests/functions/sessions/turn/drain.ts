/** Microtasks, by hand. */

const internal = (Deno as unknown as Record<symbol, { core: { processTicksAndRejections(): void } }>)[
  (Deno as unknown as { internal: symbol }).internal
];
if (internal === undefined) throw new Error("this Deno has no core");
const { core } = internal;

/** Runs all microtasks, as an isolate's bootstrap does. */
export const drain = (): void => core.processTicksAndRejections();
