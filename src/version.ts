import packageJson from "../package.json" with { type: "json" };

/** The version of this janitor. */
export const VERSION: string = packageJson.version;
