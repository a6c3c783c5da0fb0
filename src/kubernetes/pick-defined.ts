type Defined<Value> = { [Key in keyof Value as undefined extends Value[Key] ? never : Key]: Value[Key] } & {
  [Key in keyof Value as undefined extends Value[Key] ? Key : never]?: Exclude<Value[Key], undefined>;
};

/** The same object without the properties that are undefined: under exactOptionalPropertyTypes an absent one is not an undefined one. */
export function pickDefined<Value extends object>(value: Value): Defined<Value> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.fromEntries loses the names; the filter does what Defined says.
  return Object.fromEntries(Object.entries(value).filter(([, property]) => property !== undefined)) as Defined<Value>;
}
