/** HTTP as bytes, for what no client library sends. */

/** Sends bytes on a connection of its own, and answers what comes back within a moment. */
export async function exchange(url: string, bytes: string, limitMs = 3_000): Promise<string> {
  const { hostname, port } = new URL(url);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  const late = setTimeout(() => closeQuietly(connection), limitMs);
  const into = new Uint8Array(64 * 1024);
  try {
    await connection.write(new TextEncoder().encode(bytes));
    const count = await connection.read(into);
    return new TextDecoder().decode(into.subarray(0, count ?? 0));
  } catch {
    return "";
  } finally {
    clearTimeout(late);
    closeQuietly(connection);
  }
}

/** The status and the first lines that an answer has. */
export const statusOf = (answer: string): number => Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1] ?? 0);

export function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch { /* it is closed */ }
}
