/** Words with weights, for titles, bodies and search terms: from a file `word weight` a line, or a short list. */
import type { Random } from "./random.ts";

const BUILT_IN =
  `about after again always answer around because before better between board build carry change
children city clear close cloud cold country course different early earth edge enough every example family father
follow found friend garden great green ground group hand house idea island journal keep kernel large later learn
letter light line little look machine might morning mother mountain music never night number often open order
other paper people place plant point power question quick quiet reading red river road root school science sea
second session ship simple small sound spring star station stone story street summer sun system table teacher
thing think time town tree under until voice walk water weather white window winter wood work world write year`;

/** A dictionary that draws words by weight. */
export class Words {
  readonly #words: readonly string[];
  readonly #upTo: readonly number[];

  constructor(weighted: readonly (readonly [word: string, weight: number])[]) {
    let sum = 0;
    this.#words = weighted.map(([word]) => word);
    this.#upTo = weighted.map(([, weight]) => sum += weight);
  }

  static builtIn(): Words {
    return new Words(BUILT_IN.split(/\s+/).map((word) => [word, 1]));
  }

  /** Parses a file of lines `word weight`; lines of another form are left out. */
  static parse(text: string): Words {
    const lines = text.split("\n").map((line) => /^(\S+)\s+(\d+)$/.exec(line.trim()));
    const weighted = lines.flatMap((match) =>
      match === null ? [] : [[match[1] ?? "", Number(match[2])] as const]
    );
    return weighted.length === 0 ? Words.builtIn() : new Words(weighted);
  }

  /** One word, by weight. */
  word(random: Random): string {
    const draw = random.unit() * (this.#upTo.at(-1) ?? 0);
    let low = 0;
    for (let high = this.#upTo.length - 1; low < high;) {
      const middle = (low + high) >> 1;
      if ((this.#upTo[middle] ?? 0) <= draw) low = middle + 1;
      else high = middle;
    }
    return this.#words[low] ?? "";
  }

  /** Words up to a number of characters, the last one whole; at least one word. */
  text(random: Random, charsMax: number): string {
    let text = this.word(random);
    for (;;) {
      const word = this.word(random);
      if (text.length + 1 + word.length > charsMax) return text;
      text += ` ${word}`;
    }
  }
}
