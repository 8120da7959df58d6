/**
 * `sojourn top`: a live table of sites and apps.
 *
 * Stages: the terminal's other screen is taken, its cursor hidden → redrawn in place, each second and when its size
 * changes → Ctrl-C, or an error: the terminal is as it was.
 *
 * P1  However the command ends, the terminal is given back.
 */
import { AdminError } from "../deploy/admin_api.ts";
import { CLUSTER_OPTIONS, findCluster, findClusterAgain } from "./cluster.ts";
import { type Command, EXIT, type ExitCode, type Shell, type Terminal } from "./command.ts";
import { topLines, type TopView, topViewSchema } from "./top_table.ts";

const TAKE = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const GIVE_BACK = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/** `sojourn top` */
export const top: Command = {
  name: "top",
  usage: "[--once]",
  summary:
    "Shows sites and apps as they are, each second, until Ctrl-C: rates and latencies of the last 5 s, " +
    "sessions by how they arrived since each site's start.",
  options: {
    ...CLUSTER_OPTIONS,
    once: { type: "boolean", says: "once; exit 3 where a site does not answer" },
  },
  words: [0, 0],
  async run(args, shell) {
    const client = await findCluster(args, shell);
    if (args.flag("once")) {
      const value = await client.cluster();
      const view = topViewSchema.parse(value);
      if (args.json) shell.out(JSON.stringify(value));
      else for (const line of topLines(view)) shell.out(line);
      return view.sites.every((site) => site.reachable) ? EXIT.done : EXIT.partly;
    }
    const screen = screenOf(shell, args.json);
    const stop = shell.interrupted?.() ?? new AbortController().signal;
    let from: typeof client | null = client;
    try {
      while (from !== null && !stop.aborted) {
        try {
          for await (const value of from.lines("/cluster?follow=1", stop)) {
            if (value !== undefined) screen.show(value);
          }
        } catch (error) {
          if (!(error instanceof AdminError) || error.code !== "site_unreachable" || !screen.begun) {
            throw error;
          }
        }
        screen.lost();
        from = await findClusterAgain(args, shell, stop);
      }
      return EXIT.done;
    } catch (error) {
      return brokenPipe(error);
    } finally {
      screen.close();
    }
  },
};

/** Output on which views are shown. */
interface Screen {
  readonly begun: boolean;
  show(value: unknown): void;
  /** Notes that the site that told of the cluster is gone. */
  lost(): void;
  close(): void;
}

function screenOf(shell: Shell, json: boolean): Screen {
  const { terminal } = shell;
  if (!json && terminal !== undefined) return new LiveScreen(terminal);
  let begun = false;
  return {
    get begun() {
      return begun;
    },
    show: (value) => {
      if (json) shell.out(JSON.stringify(value));
      else for (const line of [...topLines(topViewSchema.parse(value)), ""]) shell.out(line);
      begun = true;
    },
    lost: () => {},
    close: () => {},
  };
}

/** The other screen of a terminal. */
class LiveScreen implements Screen {
  readonly #terminal: Terminal;
  readonly #unlisten: () => void;
  #view: TopView | null = null;
  #isLost = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    this.#unlisten = terminal.onResize(() => this.#draw());
    terminal.write(TAKE);
  }

  get begun(): boolean {
    return this.#view !== null;
  }

  show(value: unknown): void {
    this.#view = topViewSchema.parse(value);
    this.#isLost = false;
    this.#draw();
  }

  lost(): void {
    this.#isLost = true;
    this.#draw();
  }

  close(): void {
    this.#unlisten();
    this.#terminal.write(GIVE_BACK);
  }

  #draw(): void {
    if (this.#view === null) return;
    const lines = topLines(this.#view);
    if (this.#isLost) lines[0] = `${this.#view.by} no longer answers; looking for another site`;
    this.#terminal.write(frame(lines, this.#terminal));
  }
}

/** Returns lines as one write that replaces what the terminal shows, cut to its size. */
export function frame(lines: readonly string[], size: Pick<Terminal, "columns" | "rows">): string {
  const [width, height] = [size.columns(), size.rows()];
  const cut = lines.length <= height
    ? lines
    : [...lines.slice(0, height - 1), `… ${lines.length - height + 1} more lines`];
  const text = cut.map((line) => Array.from(line).slice(0, width).join("") + "\x1b[K").join("\n");
  return `\x1b[?2026h\x1b[H${text}\x1b[J\x1b[?2026l`;
}

/** Returns the exit code for a reader that has seen enough, as of `top | head`. */
function brokenPipe(error: unknown): ExitCode {
  if (error instanceof Deno.errors.BrokenPipe) return EXIT.done;
  throw error;
}
