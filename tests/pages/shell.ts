/** One bash in a folder, which keeps its variables from command to command. */

/** How a command ended. */
export interface Ended {
  readonly code: number;
  readonly printed: string;
  /** What it wrote to standard error. */
  readonly errors: string;
}

/** A command that hangs is a failure. */
const COMMAND_MS_MAX = 90_000;

/** A shell. */
export class Shell {
  readonly #child: Deno.ChildProcess;
  readonly #errors: string;
  readonly #input: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #output: ReadableStreamDefaultReader<string>;
  #text = "";
  #commands = 0;

  constructor(folder: string) {
    this.#errors = `${folder}/.errors`;
    this.#child = new Deno.Command("bash", {
      args: ["--noprofile", "--norc", "-c", "exec 2>&1; exec bash --noprofile --norc -s"],
      cwd: folder,
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    this.#input = this.#child.stdin.getWriter();
    this.#output = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  /** Runs one command, with nothing to read; what it prints must not hold the mark that ends it, which is drawn anew each time. */
  async run(command: string): Promise<Ended> {
    const mark = `end-${++this.#commands}-${crypto.randomUUID()}`;
    await this.#input.write(
      new TextEncoder().encode(
        `{ ${command}\n} </dev/null 2>${this.#errors}\nprintf '\\n%s %s\\n' ${mark} $?\n`,
      ),
    );
    const giveUp = setTimeout(() => this.#child.kill("SIGKILL"), COMMAND_MS_MAX);
    try {
      for (;;) {
        const end = new RegExp(`\\n${mark} (\\d+)\\n`).exec(this.#text);
        if (end !== null) {
          const printed = this.#text.slice(0, end.index);
          this.#text = this.#text.slice(end.index + end[0].length);
          return { code: Number(end[1]), printed, errors: await Deno.readTextFile(this.#errors) };
        }
        const { done, value } = await this.#output.read();
        if (done) throw new Error(`the shell ended within: ${command}\n${this.#text}`);
        this.#text += value;
      }
    } finally {
      clearTimeout(giveUp);
    }
  }

  /** Ends it. */
  async close(): Promise<void> {
    await this.#input.close().catch(() => {});
    await this.#output.cancel();
    await this.#child.status;
  }
}
