/**
 * `sojourn init [DIR]`: an app that runs, with types, made from a template beside this file.
 *
 * Stages: the folder looked at → every file read from the template → all written.
 *
 * I1  A folder with anything in it (but `.git`) is left as it is: nothing is overwritten.
 * I2  The written `deno.json` resolves `sojourn` to this copy, so that editors and `deno check` know its types
 *     without a registry; bundling always takes the copy that bundles (runtime/bundle/app_config.ts).
 */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { AdminError } from "../deploy/admin_api.ts";
import { APP_NAME } from "../deploy/records.ts";
import { type Command, EXIT, type Parsed, UsageError } from "./command.ts";

const HOME = new URL("../../", import.meta.url);
const TEMPLATES = new URL("templates/", import.meta.url);

/** Templates that `--template` accepts: the folders of templates/, and their files. */
export const TEMPLATE_FILES = {
  notes: ["app.ts", "README.md", "public/index.html", "public/style.css", "public/notes.js"],
  minimal: ["app.ts", "README.md"],
} as const satisfies Record<string, readonly string[]>;
type Template = keyof typeof TEMPLATE_FILES;
const TEMPLATE_DEFAULT: Template = "notes";

/** Names in a template that stand for the app's own. */
const APP_NAME_MARK = /\bapp-name\b/g;
const HOME_MARK = "sojourn-home";

/** `sojourn init [DIR]` */
export const init: Command = {
  name: "init",
  usage: "[DIR] [--template NAME]",
  summary: "Writes an app that runs, with types, into an empty or new folder (this one by default).",
  options: {
    template: {
      type: "string",
      value: "NAME",
      says: `${Object.keys(TEMPLATE_FILES).join(" or ")}; ${TEMPLATE_DEFAULT} by default`,
    },
  },
  words: [0, 1],
  async run(args, shell) {
    const template = templateOf(args);
    const folder = resolve(args.words[0] ?? ".");
    const name = appNameOf(folder);
    await refuseFilled(folder);
    const files = new Map<string, string>();
    for (const file of TEMPLATE_FILES[template]) {
      const text = await readFile(new URL(`${template}/${file}`, TEMPLATES), "utf8");
      files.set(file, text.replace(APP_NAME_MARK, name).replaceAll(HOME_MARK, HOME.href));
    }
    files.set("deno.json", await denoConfig());
    files.set(".gitignore", ".sojourn/\n.env\n");
    try {
      for (const [file, text] of files) {
        const path = join(folder, file);
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, text, { flag: "wx" }); // I1, whatever has happened meanwhile
      }
    } catch (error) {
      throw new AdminError("folder_not_written", `${folder} could not be written: ${messageOf(error)}`);
    }
    const written = [...files.keys()];
    if (args.json) shell.out(JSON.stringify({ folder, app: name, template, files: written }));
    else {
      for (const file of written) shell.out(join(folder, file));
      shell.err(`next: cd ${folder} && deno task dev`);
    }
    return EXIT.done;
  },
};

function templateOf(args: Parsed): Template {
  const asked = args.text("template") ?? TEMPLATE_DEFAULT;
  if (isTemplate(asked)) return asked;
  throw new UsageError(`--template takes ${Object.keys(TEMPLATE_FILES).join(" or ")}, not ${asked}`);
}

const isTemplate = (name: string): name is Template => Object.hasOwn(TEMPLATE_FILES, name);

/** Returns the folder's name in the form of an app's. */
export function appNameOf(folder: string): string {
  const name = basename(folder).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^[^a-z]+|(?<!-)-+$/g, "")
    .slice(0, 40).replace(/(?<!-)-+$/, "");
  return APP_NAME.test(name) ? name : "app";
}

/** Refuses a folder with anything in it (I1). */
async function refuseFilled(folder: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw new AdminError("folder_not_written", `${folder} cannot be read as a folder: ${messageOf(error)}`);
  }
  const inTheWay = names.filter((name) => name !== ".git").sort();
  if (inTheWay.length === 0) return;
  const shown = inTheWay.slice(0, 5).join(", ") + (inTheWay.length > 5 ? `, … (${inTheWay.length})` : "");
  throw new AdminError("folder_not_empty", `${folder} is not empty: ${shown}; give a new or an empty folder`);
}

const installedConfig = z.looseObject({ imports: z.record(z.string(), z.string()) });

/** Returns the app's `deno.json` (I2). */
async function denoConfig(): Promise<string> {
  const installed = installedConfig.parse(JSON.parse(await readFile(new URL("deno.json", HOME), "utf8")));
  const same = ["hono", "hono/", "zod"].map((name) => [name, installed.imports[name] ?? `npm:${name}`]);
  const at = (path: string) => JSON.stringify(fileURLToPath(new URL(path, HOME)));
  const sojourn = `deno run -A --config ${at("deno.json")} ${at("runtime/main.ts")}`;
  const config = {
    tasks: { dev: `${sojourn} dev .`, deploy: `${sojourn} deploy .`, sojourn },
    imports: {
      sojourn: new URL("functions/mod.ts", HOME).href,
      "sojourn/client": new URL("functions/client/mod.ts", HOME).href,
      ...Object.fromEntries(same),
    },
    nodeModulesDir: "none",
    unstable: ["kv"],
  };
  return JSON.stringify(config, null, 2) + "\n";
}

const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error);
