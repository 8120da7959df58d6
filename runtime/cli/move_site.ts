/** `sojourn sites move`: another parent for a site, and waiting until it has joined there. */
import { movedSchema } from "../deploy/answers.ts";
import type { AdminClient } from "../deploy/client.ts";
import { findCluster } from "./cluster.ts";
import { EXIT, type ExitCode, type Parsed, type Shell } from "./command.ts";
import { waitMs } from "./waiting.ts";

/** Milliseconds between looks: a round trip over the tree is shorter than a person notices. */
const LOOK_EVERY_MS = 200;
/** Milliseconds of waiting after which its reason is told. */
const QUIET_MS = 1_000;

/** Moves a site; exit 3 where it has not joined its new parent in time, which it goes on trying to. */
export async function moveSite(site: string, to: string, args: Parsed, shell: Shell): Promise<ExitCode> {
  const client = await findCluster(args, shell);
  const query = new URLSearchParams({ to });
  const lost = args.text("lost");
  if (lost !== undefined) query.set("lost", lost);
  const moved = movedSchema.parse(
    await client.call("POST", `/sites/${encodeURIComponent(site)}/move?${query}`),
  );
  const begunMs = performance.now();
  const joined = await joinedBelow(client, moved, waitMs(args), shell);
  const ms = Math.round(performance.now() - begunMs);
  if (args.json) shell.out(JSON.stringify({ ...moved, joined, ms }));
  else if (joined) {
    shell.out(
      moved.from === to ? `${site} is under ${to}` : `${site} is under ${to} now; it was under ${moved.from}`,
    );
  } else {
    shell.err(
      `${site} has not joined ${to} yet; it goes on trying. Where the log of ${to} says adoption_waits, it waits for ` +
        "what the sites named there have: move again with --lost where they are gone for good",
    );
  }
  return joined ? EXIT.done : EXIT.partly;
}

/** Reports whether the cluster knows the site under its new parent before the time is over. */
async function joinedBelow(
  client: AdminClient,
  { site, to }: { readonly site: string; readonly to: string },
  withinMs: number,
  shell: Shell,
): Promise<boolean> {
  const begunMs = performance.now();
  const stop = shell.interrupted?.();
  for (let isTold = false; stop?.aborted !== true;) {
    const sites = await client.sites();
    if (sites.find(({ id }) => id === site)?.parent === to) return true;
    const passedMs = performance.now() - begunMs;
    if (passedMs >= withinMs) return false;
    if (!isTold && passedMs >= QUIET_MS) {
      isTold = true;
      shell.err(`${site} dials ${to} and brings there what it has`);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  return false;
}
