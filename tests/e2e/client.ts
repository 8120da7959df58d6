/** A browser and a header client in a few lines: they keep the session's token as real ones do. */

/** An answer, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** A client that keeps the cookie. */
export class CookieClient {
  cookie = "";

  async fetch(url: string, init: RequestInit = {}): Promise<Answer> {
    const headers = new Headers(init.headers);
    if (this.cookie !== "") headers.set("cookie", this.cookie);
    const answer = await read(await fetch(url, { redirect: "manual", ...init, headers }));
    const set = answer.headers.getSetCookie().find((cookie) => cookie.startsWith("sojourn_session="));
    if (set !== undefined) this.cookie = /Max-Age=0(;|$)/.test(set) ? "" : set.slice(0, set.indexOf(";"));
    return answer;
  }
}

/** A client that keeps the header. */
export class HeaderClient {
  token = "";

  async fetch(url: string, init: RequestInit = {}): Promise<Answer> {
    const headers = new Headers(init.headers);
    if (this.token !== "") headers.set("sojourn-session", this.token);
    const answer = await read(await fetch(url, { redirect: "manual", ...init, headers }));
    this.token = answer.headers.get("sojourn-session") ?? this.token;
    return answer;
  }
}

/** Reads a response to its end. */
export async function read(response: Response): Promise<Answer> {
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Asks without any session. */
export const ask = async (url: string, init: RequestInit = {}): Promise<Answer> =>
  await read(await fetch(url, { redirect: "manual", ...init }));

/** A request that is given a session also where it does nothing in it. */
export const NEW_SESSION = { headers: { "sojourn-session-reset": "1" } };
