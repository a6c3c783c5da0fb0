// cliui 9 comes without types; this is the part that the table uses (https://github.com/yargs/cliui#api).
declare module "cliui" {
  interface Cell {
    readonly text: string;
    readonly width?: number;
    /** Top, right, bottom, left. */
    readonly padding?: readonly [number, number, number, number];
  }
  export interface Layout {
    div(...cells: readonly Cell[]): void;
    toString(): string;
  }
  // oxlint-disable-next-line import/no-default-export -- so the library exports itself.
  export default function cliui(options: { readonly width: number; readonly wrap: boolean }): Layout;
}
