import assert from "node:assert/strict";
import { SESSION_BASE } from "../../functions/class/session_slot.ts";
import { methodNames, methodOf } from "../../functions/class/session_methods.ts";

class Base {
  setTimer() {}
}
Object.defineProperty(Base.prototype, SESSION_BASE, { value: true });

class Card extends Base {
  fields = 1;
  get total() {
    return this.fields;
  }
  stamp() {}
  onOpen() {}
  onMessage() {}
  onClose() {}
  onTimer() {}
  fetch() {}
  migrate() {}
}

class Gold extends Card {
  shine() {}
}

Deno.test("methods of a class are called from outside, and nothing that the platform calls (SM1, functions/sessions/turn/handler.ts HD1)", () => {
  assert.deepEqual(methodNames(Gold.prototype).toSorted(), ["shine", "stamp"]);
  const card = new Gold();
  assert.equal(methodOf(card, "stamp"), Card.prototype.stamp);
  const none = ["setTimer", "onMessage", "fetch", "migrate", "constructor", "toString", "total", "fields"];
  for (const name of none) assert.equal(methodOf(card, name), undefined, name);
});
