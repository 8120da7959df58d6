/** What is for sale. */

export interface Article {
  readonly name: string;
  readonly cents: number;
  /** On its shelf, when the shop opens. */
  readonly stock: number;
}

const ARTICLES: readonly Article[] = [
  { name: "beans", cents: 1290, stock: 40 },
  { name: "filters", cents: 350, stock: 500 },
  { name: "grinder", cents: 7900, stock: 5 },
  { name: "kettle", cents: 4450, stock: 12 },
  { name: "mug", cents: 900, stock: 120 },
];

const BY_NAME: ReadonlyMap<string, Article> = new Map(ARTICLES.map((article) => [article.name, article]));

export const articles = (): readonly Article[] => ARTICLES;

export const articleOf = (name: string): Article | undefined => BY_NAME.get(name);
