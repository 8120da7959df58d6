/**
 * The blocks of code in a page, as a reader would use them:
 *
 *   ```ts cafe/app.ts      a file to save (any language, with a path)
 *   ```sh                  commands, one a line (a backslash continues one)
 *   ```console             commands after "$ ", each followed by what it prints
 *
 * What is printed may leave out parts: `…` stands for anything within a line, and on a line of its own for any
 * lines. Three comments, invisible to readers, make a page of examples into something that can be done:
 *
 *   <!-- given: COMMANDS -->     what the page takes for granted, one command a line
 *   <!-- where: TEXT = WORDS --> from here on, TEXT in commands and files is what the shell makes of WORDS
 *   <!-- not run: WHY -->        before a block of commands that no test can run
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

/** A name that stands for something else in this run. */
export interface StandIn {
  readonly kind: "where";
  readonly text: string;
  readonly words: string;
}

/** What a reader does with a page, in order. */
export type Step = SavedFile | TypedCommand | LeftOut | StandIn;

interface Block {
  readonly language: string;
  readonly path: string;
  readonly lines: readonly string[];
  readonly line: number;
  readonly why: string | null;
}

const FENCE = /^```(\w*) ?(\S*)/;
const COMMENT = /^<!-- (given|where|not run):\s*/;

/** The steps of a page. */
export function stepsOf(page: string): Step[] {
  const lines = page.split("\n");
  const steps: Step[] = [];
  let why: string | null = null;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? "";
    const comment = COMMENT.exec(line);
    const fence = FENCE.exec(line);
    if (comment !== null) {
      const end = lines.findIndex((each, at) => at >= i && each.endsWith("-->"));
      const text = lines.slice(i, end + 1).join("\n").slice(comment[0].length, -"-->".length).trim();
      if (comment[1] === "given") steps.push(...typed(text.split("\n"), i + 1));
      else if (comment[1] === "where") steps.push(standIn(text));
      else why = text;
      i = end;
    } else if (fence !== null) {
      const end = lines.indexOf("```", i + 1);
      const [, language = "", path = ""] = fence;
      steps.push(...stepsOfBlock({ language, path, lines: lines.slice(i + 1, end), line: i + 2, why }));
      why = null;
      i = end;
    } else if (line !== "") why = null;
  }
  return steps;
}

function standIn(comment: string): StandIn {
  const at = comment.indexOf(" = ");
  return { kind: "where", text: comment.slice(0, at), words: comment.slice(at + 3) };
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
