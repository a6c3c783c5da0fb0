import { styleText } from "node:util";

import type { Style } from "./table-frame.ts";

/** The columns of a terminal; Infinity for a pipe or a file, whose lines are not wrapped. */
export function widthOf(stream: NodeJS.WriteStream | undefined): number {
  return stream?.isTTY === true ? Math.max(stream.columns, 40) : Infinity;
}

/** Colours text where the stream shows colour: a terminal, and NO_COLOR and FORCE_COLOR as everywhere in Node. */
export function painterFor(stream: NodeJS.WriteStream | undefined): (style: Style, text: string) => string {
  return stream === undefined ? (_, text) => text : (style, text) => styleText(style, text, { stream });
}
