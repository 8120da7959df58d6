/**
 * `sojourn completion SHELL`: a script that completes commands, their verbs and their options, made from the table of
 * commands. The script makes no calls when it runs, so that completing is instant and works without a cluster.
 */
import { briefOf, type Command, COMMON, EXIT, type OptionSpec, UsageError } from "./command.ts";

const SHELLS = { bash, zsh, fish } as const;
type ShellName = keyof typeof SHELLS;
const names = Object.keys(SHELLS);

/** Returns the command, over the table that it is itself part of. */
export function completionCommand(all: () => readonly Command[]): Command {
  return {
    name: "completion",
    usage: names.join("|"),
    summary: "Writes a script that completes commands and options in a shell.",
    details: [
      "",
      "  bash   sojourn completion bash > ~/.local/share/bash-completion/completions/sojourn",
      '  zsh    sojourn completion zsh > "${fpath[1]}/_sojourn"',
      "  fish   sojourn completion fish > ~/.config/fish/completions/sojourn.fish",
    ],
    options: {},
    verbs: { at: 0, names },
    words: [1, 1],
    run(args, shell) {
      const [name = ""] = args.words;
      if (!isShell(name)) throw new UsageError(`completion takes ${names.join(", ")}, not ${name}`);
      const text = SHELLS[name](all());
      if (args.json) shell.out(JSON.stringify({ shell: name, script: text }));
      else for (const line of text.split("\n")) shell.out(line);
      return Promise.resolve(EXIT.done);
    },
  };
}

const isShell = (name: string): name is ShellName => Object.hasOwn(SHELLS, name);

const optionsOf = (command: Command): [string, OptionSpec][] =>
  Object.entries({ ...command.options, ...COMMON });
const flagsOf = (command: Command): string => optionsOf(command).map(([name]) => `--${name}`).join(" ");
/** Returns a text in single quotes for a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function bash(all: readonly Command[]): string {
  const cases = all.map((command) => {
    const { verbs } = command;
    const words = verbs === undefined ? "" : ` at=${verbs.at + 2} verbs=${quoted(verbs.names.join(" "))}`;
    return `    ${command.name}) flags=${quoted(flagsOf(command))}${words} ;;`;
  });
  return `# bash completion of sojourn
_sojourn() {
  local current=\${COMP_WORDS[COMP_CWORD]} flags= verbs= at=0 words=
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    words=${quoted([...all.map((command) => command.name), "--help", "--version"].join(" "))}
  elif [[ $current == -* ]]; then
    words=$flags
  elif [ "$COMP_CWORD" -eq "$at" ]; then
    words=$verbs
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sojourn sojourn`;
}

function zsh(all: readonly Command[]): string {
  const cases = all.map((command) => {
    const flags = optionsOf(command).map(([name, spec]) => quoted(`--${name}:${spec.says}`)).join(" ");
    const { verbs } = command;
    const words = verbs === undefined ? "" : `; at=${verbs.at + 3}; verbs=(${verbs.names.join(" ")})`;
    return `    ${command.name}) flags=(${flags})${words} ;;`;
  });
  const commands = all.map((command) => quoted(`${command.name}:${briefOf(command)}`)).join(" ");
  return `#compdef sojourn
_sojourn() {
  local -a flags verbs commands
  local at=0
  commands=(${commands})
  case \${words[2]} in
${cases.join("\n")}
  esac
  if (( CURRENT == 2 )); then
    _describe command commands
  elif [[ \${words[CURRENT]} == -* ]]; then
    _describe option flags
  elif (( CURRENT == at )); then
    compadd -a verbs
  else
    _files
  fi
}
compdef _sojourn sojourn`;
}

function fish(all: readonly Command[]): string {
  const text = (says: string) => `'${says.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = ["# fish completion of sojourn"];
  for (const command of all) {
    lines.push(
      `complete -c sojourn -f -n __fish_use_subcommand -a ${command.name} -d ${text(briefOf(command))}`,
    );
    const seen = `-n '__fish_seen_subcommand_from ${command.name}'`;
    if (command.verbs !== undefined) {
      lines.push(`complete -c sojourn ${seen} -a '${command.verbs.names.join(" ")}'`);
    }
    for (const [name, spec] of optionsOf(command)) {
      const value = spec.type === "string" ? " -r" : "";
      lines.push(`complete -c sojourn ${seen} -l ${name}${value} -d ${text(spec.says)}`);
    }
  }
  return lines.join("\n");
}
