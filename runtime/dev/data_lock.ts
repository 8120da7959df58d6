/**
 * Lock of a data folder, for one dev process: a second one would give the sites of the first other ports and another
 * cluster file before it found that it cannot start.
 *
 * Life: `lockData`, before anything is written → the lock is the operating system's, and ends with the process.
 */
import { join } from "node:path";
import { ConfigError } from "../site/config.ts";

const LOCK_FILE = "lock";

/** Takes a data folder for this process. @throws ConfigError where another one has it. */
export async function lockData(data: string): Promise<Disposable> {
  const path = join(data, LOCK_FILE);
  let file: Deno.FsFile;
  try {
    await Deno.mkdir(data, { recursive: true, mode: 0o700 });
    file = await Deno.open(path, { create: true, read: true, write: true, mode: 0o600 });
  } catch (error) {
    throw new ConfigError(
      `cannot use --data ${data}: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (file.tryLockSync(true)) {
    file.truncateSync(0);
    file.writeSync(new TextEncoder().encode(`${Deno.pid}\n`));
    return { [Symbol.dispose]: () => file.close() };
  }
  file.close();
  const pid = (await Deno.readTextFile(path)).trim();
  throw new ConfigError(
    `process ${pid} runs a cluster on ${data} already; stop it first, or give --data another folder`,
  );
}
