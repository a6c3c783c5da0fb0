// Draws the README's picture from what the built command really shows: npm run picture.
import { mkdirSync, writeFileSync } from "node:fs";

import { drawTerminal, recordDemo } from "./terminal-picture.ts";

const COLUMNS = 120;

mkdirSync("docs/images", { recursive: true });
writeFileSync("docs/images/sweep.svg", drawTerminal(recordDemo(COLUMNS), COLUMNS));
