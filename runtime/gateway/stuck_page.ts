/**
 * Page for a person whose browser's session can't go on, at a navigation with its cookie: the problem that programs are
 * told, in words, and the two things that can be done (docs/http.md).
 *
 * STP1  The page decides nothing: the cookie stays until the person drops it, by the platform's own path.
 * STP2  The page runs and loads nothing but its own script, whatever stands in the problem.
 */
import type { Problem } from "../../functions/vocabulary/problem.ts";
import type { RequestHead } from "./request_head.ts";

/** Title and texts of each of the two problems. */
const WORDS = {
  source_unreachable: [
    "One moment, please",
    "What you last saw or did here is at a server that cannot be reached now. It goes on as soon as that is back.",
    "If you begin anew, what only that server has is missing until then, and the app takes you for a new visitor.",
  ],
  source_lost: [
    "Something was lost",
    "The server where you last were has lost its disk, and with it perhaps the last of what you saw or did here.",
    "If you begin anew, you see what there is, and the app takes you for a new visitor.",
  ],
} as const;
type Stuck = keyof typeof WORDS;

const isStuck = (code: string): code is Stuck => Object.hasOwn(WORDS, code);

/** Reports whether a problem is to be shown to a person, and not to a program. */
export const isForPerson = (problem: Problem, head: RequestHead | null): boolean =>
  isStuck(problem.code) && head !== null && head.tokenFrom === "cookie" && head.navigation;

/** Returns the page. @param answer as a program would get it: its status and headers stay. */
export function stuckPage({ code, message }: Problem, answer: Response): Response {
  const [title, what, then] = WORDS[isStuck(code) ? code : "source_unreachable"];
  const nonce = crypto.randomUUID();
  const headers = new Headers(answer.headers);
  headers.set("content-type", "text/html; charset=utf-8");
  headers.set(
    "content-security-policy",
    `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; connect-src 'self'; ` +
      "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  );
  headers.append("vary", "accept, sec-fetch-mode");
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style nonce="${nonce}">:root { color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 40rem; padding: 0 1rem } small { opacity: 0.7 }</style>
<h1>${title}</h1><p>${what}</p><p>${then}</p>
<form id="anew" method="post" action="/_sojourn/session/reset">
${code === "source_lost" ? "" : '<button id="again" type="button">Try again</button>'}
<button>Begin anew</button></form>
<p><small>${code}: ${escaped(message)}</small></p>
<script nonce="${nonce}">
const again = () => location.reload();
document.getElementById("again")?.addEventListener("click", again);
document.getElementById("anew").onsubmit = (event) => {
  event.preventDefault();
  fetch(event.target.action, { method: "POST" }).then(again, again);
};
</script>
`;
  return new Response(page, { status: answer.status, headers });
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (mark) => ENTITIES[mark] ?? "");
