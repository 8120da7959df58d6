/**
 * The blocks of code in a page, as a reader would use them:
 *
 *   ```ts cafe/app.ts      a file to save (any language, with a path)
 *   ```sh                  commands, one a line (a backslash continues one)
 *   ```console             commands after "$ ", each followed by what it prints
 *
 * `<!-- not run: why -->` before a block of commands says why a test can't run it. What is printed may leave out
 * parts: `…` stands for anything within a line, and on a line of its own for any lines.
 */

/** A file that the reader saves. */
export interface SavedFile {
  readonly kind: "file";
  readonly path: string;
  readonly text: string;
}

/** A command that the reader types. */
export interface TypedCommand {
  readonly kind: "command";
  readonly line: number;
  readonly text: string;
  /** null: the page does not say what it prints. */
  readonly prints: string | null;
}

/** A block of commands that is not run. */
export interface LeftOut {
  readonly kind: "left out";
  readonly line: number;
  readonly why: string;
}

/** What a reader does with a page, in order. */
export type Step = SavedFile | TypedCommand | LeftOut;

interface Block {
  readonly language: string;
  readonly path: string;
  readonly lines: readonly string[];
  readonly line: number;
  readonly why: string | null;
}

const FENCE = /^```(\w*) ?(\S*)/;
const NOT_RUN = /^<!-- not run: (.+) -->$/;

/** The steps of a page. */
export function stepsOf(page: string): Step[] {
  return blocksOf(page.split("\n")).flatMap(stepsOfBlock);
}

function blocksOf(lines: readonly string[]): Block[] {
  const blocks: Block[] = [];
  let why: string | null = null;
  for (let i = 0; i < lines.length; i++) {
    const fence = FENCE.exec(lines[i] ?? "");
    if (fence === null) {
      if (lines[i] !== "") why = NOT_RUN.exec(lines[i] ?? "")?.[1] ?? null;
      continue;
    }
    const end = lines.indexOf("```", i + 1);
    const [, language = "", path = ""] = fence;
    blocks.push({ language, path, lines: lines.slice(i + 1, end), line: i + 2, why });
    why = null;
    i = end;
  }
  return blocks;
}

function stepsOfBlock(block: Block): Step[] {
  const { language, path, lines, line, why } = block;
  if (path !== "" && path !== "ignore") return [{ kind: "file", path, text: lines.join("\n") + "\n" }];
  if (language !== "sh" && language !== "console") return [];
  if (why !== null) return [{ kind: "left out", line, why }];
  return language === "sh" ? typed(lines, line) : shown(lines, line);
}

/** Every line is a command. */
function typed(lines: readonly string[], first: number): Step[] {
  const commands: Step[] = [];
  let text = "";
  lines.forEach((line, i) => {
    text += line;
    if (text.endsWith("\\")) {
      text += "\n";
      return;
    }
    if (text.trim() !== "" && !text.startsWith("#")) {
      commands.push({ kind: "command", line: first + i, text, prints: null });
    }
    text = "";
  });
  return commands;
}

/** Lines after "$ " are commands; the lines below are what they print. */
function shown(lines: readonly string[], first: number): Step[] {
  const commands: TypedCommand[] = [];
  lines.forEach((line, i) => {
    const last = commands.at(-1);
    if (line.startsWith("$ ")) {
      commands.push({ kind: "command", line: first + i, text: line.slice(2), prints: null });
    } else if (last?.prints === null && last.text.endsWith("\\")) {
      commands[commands.length - 1] = { ...last, text: `${last.text}\n${line}` };
    } else if (last !== undefined) {
      commands[commands.length - 1] = { ...last, prints: (last.prints ?? "") + line + "\n" };
    }
  });
  return commands;
}

/** Whether something was printed as the page says. */
export function isAsShown(printed: string, shown: string): boolean {
  const pattern = shown.trimEnd().split("\n")
    .map((line) => line.trim() === "…" ? "(?:.*\n)*?" : linePattern(line) + "\n")
    .join("");
  return new RegExp(`^${pattern}$`).test(printed.replaceAll("\r", "").trimEnd() + "\n");
}

/** Columns may be wider or narrower than when the page was written. */
const linePattern = (line: string): string =>
  line.trimEnd().split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/ {2,}/g, " +"))
    .join(".*");
