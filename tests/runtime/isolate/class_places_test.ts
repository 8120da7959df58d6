import { strict as assert } from "node:assert";
import { classPlaces, placeIn } from "../../../runtime/isolate/inside/class_places.ts";

class Card {
  static toString(): string {
    throw new Error("it has a text of its own");
  }
  stamp(): number {
    return 1;
  }
}

Deno.test("a method is found where its class has it, whatever that class says of itself", () => {
  const source = `// stamp() {}\n  ${Function.prototype.toString.call(Card)}`;
  const places = classPlaces(source, { card: Card, none: 1 });
  const line = source.split("\n").findIndex((each) => /^ +stamp\(\)/.test(each)) + 1;
  assert.match(placeIn(places, "card", "stamp"), new RegExp(`^at Card\\.stamp \\(.+:${line}:\\d+\\)$`));
  assert.equal(placeIn(places, "card", "clear"), "");
});
