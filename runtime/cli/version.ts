/** Versions of this copy of Sojourn and of its Deno. */
import { z } from "zod";

const config = z.looseObject({ version: z.string() });

/** Returns the version of this copy, and of the Deno that runs it. */
export async function versionsOfThis(): Promise<{ sojourn: string; deno: string }> {
  const text = await Deno.readTextFile(new URL("../../deno.json", import.meta.url));
  return { sojourn: config.parse(JSON.parse(text)).version, deno: Deno.version.deno };
}
