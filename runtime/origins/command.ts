/** `sojourn agent` in the command line's table; agent_run.ts runs it. */
import { CLUSTER_OPTIONS } from "../cli/cluster.ts";
import { type Command, UsageError } from "../cli/command.ts";

/** The `agent` command. */
export const agentCommand: Command = {
  name: "agent",
  usage: "--app APP --session CLASS (--origin ADDR | --listen HOST:PORT [--id ID]) [--to URL]",
  summary: [
    "Connects programs that know nothing of Sojourn to stateful sessions. Their connections stay while sites come and",
    "go. With --origin it runs next to the server behind a class (its `static origin`) and stands for it at the root.",
    "With --listen it takes TCP connections; each is a client of a session, of one of its own where --id names none. They",
    "go to the site of --to (or SOJOURN_URL), else to the nearest one; when that is lost, to the others. It runs until",
    "Ctrl-C. Outside dev it needs a token: `agent:APP/CLASS TOKEN` in the token file of the sites.",
  ].join("\n"),
  options: {
    ...CLUSTER_OPTIONS,
    app: { type: "string", value: "APP", says: "the app" },
    session: { type: "string", value: "CLASS", says: "the class: its name in defineApp({ sessions })" },
    origin: {
      type: "string",
      value: "ADDR",
      says: "the server, such as tcp://127.0.0.1:7000 or ws://127.0.0.1:9000/",
    },
    listen: {
      type: "string",
      value: "HOST:PORT",
      says: "where client programs connect; port 0 takes a free one",
    },
    id: { type: "string", value: "ID", says: "with --listen: the session of all connections" },
  },
  words: [0, 0],
  async run(args, shell) {
    const app = args.text("app"), className = args.text("session");
    if (app === undefined || className === undefined) throw new UsageError("agent takes --app and --session");
    const origin = args.text("origin"), listen = args.text("listen");
    if ((origin === undefined) === (listen === undefined)) {
      throw new UsageError("agent takes one of --origin and --listen");
    }
    const { runAgent } = await import("./agent_run.ts"); // with all that only an agent needs
    return await runAgent({ app, class: className }, args, shell);
  },
};
