/** `sojourn rollout`: gives a version to a part of the sessions, to another part, to all, or to none. */
import { parseWeight, WEIGHT_MAX } from "../deploy/rollout.ts";
import { date, showDeployed, VERSION_DIGITS } from "./apps.ts";
import { WAIT_OPTIONS, waitMs } from "./waiting.ts";
import { CLUSTER_OPTIONS, findCluster } from "./cluster.ts";
import { type Command, EXIT, type ExitCode, type Parsed, type Shell, UsageError } from "./command.ts";
import { ChangeProgress } from "./following.ts";

/** `sojourn rollout APP [VERSION WEIGHT% | finish | abort | show]` */
export const rollout: Command = {
  name: "rollout",
  usage: "APP [VERSION WEIGHT% | finish | abort | show]",
  summary: [
    "Gives a version to a part of the sessions: those that have it keep it while the weight grows, at every site.",
    "`finish` makes it serve all, `abort` nobody. Without more, shows what runs. (A version that serves nobody",
    "yet comes of `sojourn deploy --weight 0%`.)",
  ].join("\n"),
  options: { ...CLUSTER_OPTIONS, ...WAIT_OPTIONS },
  verbs: { at: 1, names: ["show", "finish", "abort"] },
  words: [1, 3],
  async run(args, shell) {
    const [app = "", verb = "show", text] = args.words;
    const wait = waitMs(args);
    if (text === undefined && parseWeight(verb) !== null) {
      throw new UsageError(
        `which version gets ${verb} is missing: rollout ${app} VERSION ${verb} (sojourn versions ${app} lists them)`,
      );
    }
    const isWord = verb === "show" || verb === "finish" || verb === "abort";
    if (isWord && text !== undefined) throw new UsageError(`${verb} takes nothing more, not ${text}`);
    const weight = isWord ? 0 : weightOf(text);
    if (verb === "show") return await show(app, args, shell);
    const client = await findCluster(args, shell);
    const following = new ChangeProgress(shell);
    const deployed = await following.run(
      client,
      (progress) =>
        verb === "finish" || verb === "abort"
          ? client.endRollout(app, verb, wait, progress)
          : client.rollout(app, { version: verb, weight }, wait, progress),
      { look: `rollout ${app}` },
    );
    return showDeployed(deployed, args, shell);
  },
};

/** Returns the weight that a word of the command line names. @throws UsageError */
export function weightOf(text: string | undefined): number {
  const weight = parseWeight(text ?? "");
  if (weight !== null) return weight;
  throw new UsageError(
    text === undefined
      ? "a weight is missing, such as 10%"
      : `a weight is a number from 0 to ${WEIGHT_MAX} with at most two decimals, such as 10%, not ${text}`,
  );
}

async function show(app: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const state = await (await findCluster(args, shell)).rolloutOf(app);
  if (args.json) shell.out(JSON.stringify(state));
  else {
    const { current, rollout } = state;
    if (rollout === null) shell.out(`every session of ${app} gets ${current.slice(0, VERSION_DIGITS)}`);
    else {
      const { version, weight, sinceMs } = rollout;
      shell.out(
        `${weight} % of the sessions of ${app} get ${version.slice(0, VERSION_DIGITS)} since ${
          date(sinceMs)
        }`,
      );
      shell.out(`the others get ${current.slice(0, VERSION_DIGITS)}`);
    }
  }
  return EXIT.done;
}
