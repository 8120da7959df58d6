/** Prepares a bootstrap's process before any app code runs. */

/** Paths that the process was started with. */
export interface IsolatePaths {
  readonly socket: string;
  /** File in which it is written what was begun last: the site reads it when this process has died. */
  readonly mark: string;
}

/** Gives up all permissions, when the process has connected. @throws Error where one is still there. */
export async function revokeAll({ socket, mark }: IsolatePaths): Promise<void> {
  for (const name of ["read", "write", "net"] as const) await Deno.permissions.revoke({ name });
  const descriptors = [
    { name: "read", path: socket },
    { name: "write", path: socket },
    { name: "write", path: mark },
  ] as const;
  for (const descriptor of descriptors) {
    await Deno.permissions.revoke(descriptor);
    const { state } = await Deno.permissions.query(descriptor);
    if (state === "granted") {
      throw new Error(
        `the permission to ${descriptor.name} ${descriptor.path} is still there (main.ts B1, stateful_host.ts SH1)`,
      );
    }
  }
  const net = await Deno.permissions.query({ name: "net" });
  if (net.state === "granted") {
    throw new Error("the permission to use the network is still there (main.ts B1)");
  }
}

/** Has uncaught errors logged; `caught` is called first. */
export function catchUncaught(caught: (error: unknown) => void = () => {}): void {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    caught(event.reason);
    console.error("Uncaught (in promise)", event.reason);
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    caught(event.error);
    console.error("Uncaught", event.error);
  });
}
