/** Breaking things by click, in dev clusters; hidden where a site takes no faults. */
import { Refused } from "./live.js";
import { announce, byId, counted, el, say } from "./show.js";

const LOOK_MS = 1_500;
/** What "slow" makes of a link. */
const SLOW_RTT_MS = 400;

export class Faults {
  #cluster;
  #shown = "";
  #buttons = null;
  /** What is in force, as `GET /_sojourn/admin/chaos` says; null where there is no such thing. */
  state = null;

  constructor(cluster) {
    this.#cluster = cluster;
  }

  async run(signal) {
    while (!signal.aborted) {
      try {
        const answer = await this.#cluster.call("/chaos", { signal });
        if (answer.ok) this.state = await answer.json();
        else if (answer.status !== 503) this.state = null;
      } catch (error) {
        // This cluster takes no faults, or the token is none, which the other streams say: nothing to ask again.
        if (error instanceof Refused) {
          this.state = null;
          byId("faults").hidden = true;
          return;
        }
      }
      byId("faults").hidden = this.state === null;
      await new Promise((resolve) => setTimeout(resolve, this.state === null ? 4 * LOOK_MS : LOOK_MS));
    }
  }

  /** The buttons for a site. */
  show(site, view) {
    const { parent, id } = site;
    const key = `${id}<${parent}`;
    if (key !== this.#shown) {
      this.#shown = key;
      this.#build(id, parent);
    }
    if (this.state === null || this.#buttons === null) return;
    const { down, paused, cuts, delays, disks } = this.state;
    const touches = (a, b) => ({ a: x, b: y }) => (x === a && y === b) || (x === b && y === a);
    const others = view.sites.length - 1;
    const cutOff = cuts.filter(({ a, b }) => a === id || b === id).length;
    const pressed = {
      kill: down.includes(id),
      pause: paused.includes(id),
      cutOff: others > 0 && cutOff >= others,
      cut: parent !== null && cuts.some(touches(id, parent)),
      slow: parent !== null && delays.some(touches(id, parent)),
      full: disks.some((disk) => disk.site === id),
    };
    for (const [name, button] of Object.entries(this.#buttons)) {
      button.setAttribute("aria-pressed", String(pressed[name]));
      say(button, button.dataset[pressed[name] ? "undo" : "act"]);
    }
    const count = cuts.length + delays.length + down.length + paused.length + disks.length +
      this.state.skews.length;
    say(
      byId("faults-count"),
      count === 0 ? "nothing is broken" : `${counted(count, "fault")} in force`,
    );
    byId("heal-all").disabled = cuts.length + delays.length === 0;
  }

  #build(id, parent) {
    const toggle = (act, undo, body, undoing) => {
      const button = el("button", {
        type: "button",
        "data-act": act,
        "data-undo": undo,
        "aria-pressed": "false",
      }, act);
      button.onclick = () =>
        this.#do(button.getAttribute("aria-pressed") === "true" ? undoing ?? this.#joining(id) : body);
      return button;
    };
    const site = id;
    this.#buttons = {
      kill: toggle("Kill", "Start", { action: "kill", site }, { action: "restart", site }),
      pause: toggle("Pause", "Resume", { action: "pause", site }, { action: "resume", site }),
      cutOff: toggle("Cut off", "Join again", { action: "partition", a: [id] }, null),
      full: toggle("Fill its disk", "Repair its disk", { action: "disk", site, state: "full" }, {
        action: "disk",
        site,
        state: "ok",
      }),
    };
    if (parent !== null) {
      this.#buttons.cut = toggle(`Cut link to ${parent}`, `Heal link to ${parent}`, {
        action: "partition",
        a: [id],
        b: [parent],
      }, { action: "heal", a: id, b: parent });
      this.#buttons.slow = toggle(`Slow link to ${parent}`, `Link to ${parent} as it was`, {
        action: "delay",
        a: id,
        b: parent,
        rttMs: SLOW_RTT_MS,
      }, { action: "heal", a: id, b: parent });
    }
    const restart = el(
      "button",
      { type: "button", onclick: () => this.#do({ action: "restart", site }) },
      "Restart",
    );
    const heal = el(
      "button",
      { type: "button", id: "heal-all", onclick: () => this.#do({ action: "heal" }) },
      "Heal all links",
    );
    byId("faults").replaceChildren(
      el(
        "div",
        { class: "head" },
        el("h3", {}, "Break it"),
        el("span", { id: "faults-count", class: "note" }),
      ),
      el(
        "div",
        { class: "buttons", role: "group", "aria-label": `Faults at ${id}` },
        ...Object.values(this.#buttons),
        restart,
        heal,
      ),
      el("p", { id: "faults-did", class: "note", role: "status" }),
    );
  }

  /** What takes back every cut at a site. */
  #joining(id) {
    return this.state.cuts.filter(({ a, b }) => a === id || b === id).map(({ a, b }) => ({
      action: "heal",
      a,
      b,
    }));
  }

  /** Does one action, or several. */
  async #do(actions) {
    const did = byId("faults-did");
    say(did, "at it …");
    try {
      for (const body of [actions].flat()) {
        const answer = await this.#cluster.call("/chaos", { method: "POST", body });
        const said = await answer.json();
        say(did, answer.ok ? said.did : said.detail);
      }
      announce(did.textContent);
      const state = await this.#cluster.call("/chaos");
      if (state.ok) this.state = await state.json();
    } catch (error) {
      say(did, error instanceof Refused ? error.message : "the site that was asked does not answer");
    }
  }
}
