/** Runs the Python programs beside this file: implementations of our formats that share no code with ours. */
import { fileURLToPath } from "node:url";

/**
 * Runs a program with arguments and input; null where this machine has no Python 3.
 *
 * @throws Error where the program fails, with its stderr.
 */
export async function runPython(
  program: string,
  args: readonly string[],
  input = "",
): Promise<string | null> {
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command("python3", {
      args: [fileURLToPath(new URL(program, import.meta.url)), ...args],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close();
  const { success, stdout, stderr } = await child.output();
  if (!success) throw new Error(`${program}: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}

/** The stored vectors of a format, as text. */
export const storedVectors = (name: string): Promise<string> =>
  Deno.readTextFile(new URL(name, import.meta.url));
