/**
 * The parent that an operator gave a running site (`sojourn sites move`), kept in its data folder: it takes precedence
 * over the site file's, until the site file names another one than it did at that time.
 */
import { z } from "zod";
import { replaceFile } from "../../functions/client/replace_file.ts";
import { ConfigError, linkUrl, type SiteConfig, siteId } from "./config.ts";

/** Parent of a site. */
export type Parent = NonNullable<SiteConfig["parent"]>;

const schema = z.strictObject({
  parent: z.strictObject({ id: siteId, url: linkUrl, lost: z.array(siteId) }),
  /** Parent that the site file named at that time. */
  instead: z.strictObject({ id: siteId, url: linkUrl }),
});

const fileOf = (config: SiteConfig): string => `${config.data}/parent.json`;

/** Returns the configuration with the parent that holds. @throws ConfigError */
export async function withParent(config: SiteConfig): Promise<SiteConfig> {
  if (config.parent === null) return config;
  const file = fileOf(config);
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return config;
    throw new ConfigError(`cannot read ${file}: ${error instanceof Error ? error.message : error}`);
  }
  const moved = parsed(file, text);
  const { id, url } = moved.instead;
  return id === config.parent.id && url === config.parent.url ? { ...config, parent: moved.parent } : config;
}

function parsed(file: string, text: string): z.infer<typeof schema> {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : error;
    throw new ConfigError(
      `${file} is not what \`sojourn sites move\` left there: ${why}. Write the parent that the site was moved to into the ` +
        `site file, and remove this file`,
    );
  }
}

/** Keeps a parent. @param instead the parent that the site file names. */
export async function keepParent(config: SiteConfig, parent: Parent, instead: Parent): Promise<void> {
  await Deno.mkdir(config.data, { recursive: true, mode: 0o700 });
  const text = JSON.stringify({ parent, instead: { id: instead.id, url: instead.url } });
  (await replaceFile(Deno, fileOf(config), text + "\n", { mode: 0o600 })).close();
}
