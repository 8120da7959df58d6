/**
 * What the open tokens of a history stand for: all that had been told when they are presented.
 *
 * An answer whose session could still write left an open token first, and then went on: what its client heard after
 * that, no token names. Whoever presents the token follows all of it that had arrived by then.
 */
import type { HistoryEvent } from "./history.ts";
import type { Past } from "./past.ts";

/** Follows answers that go on. */
export class OpenAnswers {
  /** By request: its open issues. */
  readonly #issues = new Map<number, number[]>();
  /** By request and chunk: what the answer stood for as it left. */
  readonly #sent = new Map<string, Past>();

  /**
   * Takes in an event; where open issues stand for more from now on, says which, and for what.
   *
   * @param past of a request that runs.
   */
  step(
    event: HistoryEvent,
    past: (request: number) => Past,
  ): { readonly issues: readonly number[]; readonly past: Past } | null {
    if (event.kind === "issue" && event.open) {
      this.#issues.set(event.request, [...this.#issues.get(event.request) ?? [], event.issue]);
    } else if (event.kind === "chunk") {
      this.#sent.set(`${event.request} ${event.chunk}`, past(event.request).copy());
    } else if (event.kind === "told") {
      const [issues, told] = [
        this.#issues.get(event.request),
        this.#sent.get(`${event.request} ${event.chunk}`),
      ];
      if (issues === undefined || told === undefined) {
        throw new Error(`request ${event.request} has told chunk ${event.chunk}, which never left`);
      }
      return { issues, past: told };
    }
    return null;
  }
}
