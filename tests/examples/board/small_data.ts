/** Data small enough for tests, the same every time. */
import { BoardData } from "./generator.ts";
import { Words } from "./words.ts";

/** 40 users, 60 stories, 200 comments. */
export const smallData = (): BoardData =>
  new BoardData({
    seed: 7,
    nowMs: Date.UTC(2026, 0, 31),
    words: Words.builtIn(),
    users: 40,
    stories: 60,
    comments: 200,
    commentBytes: 200,
    attachmentBytes: 0,
    submissions: 25,
    categories: 6,
  });
