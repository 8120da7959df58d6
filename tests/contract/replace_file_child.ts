/**
 * The process whose file replace_file_test.ts loses at a power cut: replaces a file again and again by larger and
 * smaller ones, and says the number of each once it has been replaced. Arguments: path, last number.
 */
import { replaceFile } from "../../functions/client/replace_file.ts";
import { numbered } from "./replace_file_numbered.ts";

const [path = "", last = "0"] = Deno.args;
for (let number = 1; number <= Number(last); number++) {
  (await replaceFile(Deno, path, numbered(number), { mode: 0o600 })).close();
  Deno.stdout.writeSync(new TextEncoder().encode(`${number}\n`));
}
