/**
 * Loads all tests of the files and folders that are its arguments into one isolate:
 * `deno test -A tests/gate/together.ts -- PATH…`.
 *
 * `deno test` gives each file an isolate of its own, and most files of a part load the same hundred modules: loaded once
 * they take a fifth less CPU. What a file leaves behind is there for the next one: none may leave anything. To run one
 * file alone, name it to `deno test`.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { testFiles } from "./test_files.ts";

const files = testFiles(Deno.args);
if (files.length === 0) throw new Error(`no test is in ${Deno.args.join(", ")}`);
for (const file of files) await import(pathToFileURL(join(Deno.cwd(), file)).href);
