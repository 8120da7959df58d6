/** JSON with comments and trailing commas, as deno.jsonc and tsconfig.json have it. */

/** Parses JSON with comments and trailing commas. @throws Error that names the file. */
export function parseJsonc(text: string, path: string): unknown {
  // Comments, then trailing commas, outside of strings.
  const plain = text
    .replace(/("(?:[^"\\]|\\[^])*"?)|\/\/[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?/g, "$1")
    .replace(/("(?:[^"\\]|\\[^])*"?)|,(?=\s*[}\]])/g, "$1");
  try {
    return JSON.parse(plain);
  } catch (error) {
    throw new Error(`${path} is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}
