/** What the checkers of owners groups let pass, as tests/sim/excuses.ts says. */
import type { Excuse } from "../../sim/excuses.ts";

export const OWNERS_EXCUSES: readonly Excuse[] = [
  {
    name: "acted on twice: a living site was taken for dead",
    perHundred: 700,
    says: "only if a living site was taken for dead",
  },
  {
    name: "acted on twice: who had acted died before the others knew",
    perHundred: 1_200,
    says: "if the site that acted died before the others knew",
  },
  {
    name: "acted on twice: more than f were down",
    perHundred: 20,
    says: "or if more than f of those that had it were down at one time",
  },
  {
    name: "acted on twice: sent again at a site that does not own it any more",
    perHundred: 20,
    says: "whose other owners took that site for dead",
  },
  {
    name: "acted on twice: who had taken it over died before who acted knew",
    perHundred: 1,
    says: "if one that had taken it over, or noted something on it, died before who acted knew",
  },
  {
    name: "a copy that was lost while its receipt was on its way",
    perHundred: 60,
    says: "one of these may be lost while that word is on its way",
  },
  {
    name: "a mark, made while another one acted on the tuple, too",
    perHundred: 1,
    says: "two act on a tuple at one time, what one of them noted on it may be lost",
  },
  {
    name: "a mark that had not reached the one that took the tuple over",
    perHundred: 4,
    says: "what it noted up to what had reached the one that takes it over",
  },
];
