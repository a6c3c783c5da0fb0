/** Whether the changes of one kind of object in a cluster come. While they do not, the interval is what finds them. */
export interface Following {
  readonly cluster: string;
  readonly what: string;
  /** Why they do not. `denied`: the right is missing. */
  readonly trouble?: { readonly problem: string; readonly denied: boolean };
}
