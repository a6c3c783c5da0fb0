import { Pool, type QueryResultRow } from "pg";

import { formatIdentity, type BackendIdentity } from "../core/backend-identity.ts";
import { LOCKS_FOLDER } from "../core/key.ts";
import { describeTooLarge, MAX_LOCK_BYTES, parseLockBody } from "../core/lock.ts";
import { fromMilliseconds, type Nanoseconds } from "../core/time.ts";
import type { Backend, BackendOptions, Deletion, LockEntry, LockRead, StateRead, WriteCheck } from "./backend.ts";
import { composeRecords, deleteUntilAnswered, MAX_RECORD_BYTES, readUnlessDenied, describeCircle } from "./driver.ts";
import { isUnanswered, wrapPostgresError, type Action } from "./postgres-errors.ts";
import { readPostgresSettings, type PostgresSettings, type PostgresTls } from "./postgres-settings.ts";

/** For tests that need several pages of few rows. */
export interface PostgresTuning {
  readonly pageSize?: number;
}

/** Opens a table. No connection is made yet. Throws `backend-url-invalid`. */
export function openPostgres({ url, env, requestTimeout, now }: BackendOptions, { pageSize = 1_000 }: PostgresTuning = {}): Promise<Backend> {
  const settings = readPostgresSettings(url, env);
  const { host, port, database, user, password, tls, clientCertificate, applicationName, searchPath } = settings;
  const encryption = composeTls(tls, host);
  const pool = new Pool({
    host,
    port,
    database,
    max: 4,
    connectionTimeoutMillis: Math.min(requestTimeout, 5_000),
    query_timeout: requestTimeout,
    statement_timeout: requestTimeout,
    application_name: applicationName ?? "pulumi-lock-janitor",
    // Nothing keeps the process alive for an idle connection.
    allowExitOnIdle: true,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ...(searchPath === undefined ? {} : { options: `-c search_path=${searchPath.replace(/[\\ ]/g, "\\$&")}` }),
    ssl: encryption === false ? false : { ...encryption, ...clientCertificate },
  });
  // A connection that is lost while it is idle is replaced by the next query, which tells what is wrong.
  pool.on("error", () => undefined);
  return Promise.resolve(new PostgresBackend(settings, pool, pageSize, now));
}

class PostgresBackend implements Backend {
  readonly identity: BackendIdentity;
  readonly concurrency = 4;
  readonly credential: string;
  readonly #name: string;
  readonly #table: string;
  readonly #prefix: string;
  readonly #pool: Pool;
  readonly #pageSize: number;
  readonly #now: () => number;
  #clockOffset: Nanoseconds | undefined;

  constructor({ host, port, database, table, prefix, user }: PostgresSettings, pool: Pool, pageSize: number, now: () => number) {
    this.identity = { scheme: "postgres", endpoint: `${host.includes(":") ? `[${host}]` : host}:${port}`, database, table, prefix };
    this.credential = user === undefined ? "the default user" : `the user ${user}`;
    this.#name = formatIdentity(this.identity);
    this.#table = table;
    this.#prefix = prefix;
    this.#pool = pool;
    this.#pageSize = pageSize;
    this.#now = now;
  }

  readonly records = composeRecords({
    create: (key, bytes) => this.#insert(key, bytes, "write a record"),
    list: (folder) => this.#list(folder, "list the records"),
    read: async (key) => {
      const row = await this.#select(key, MAX_RECORD_BYTES, "read a record");
      return row?.body === undefined ? undefined : Buffer.from(row.body, "base64");
    },
  });

  listLocks(): AsyncGenerator<readonly LockEntry[]> {
    return this.#list(LOCKS_FOLDER, "list the locks");
  }

  async readLock(key: string): Promise<LockRead> {
    return await readUnlessDenied(async () => {
      const row = await this.#select(key, MAX_LOCK_BYTES, "read a lock");
      if (row === undefined) return { kind: "gone" };
      this.#clockOffset = BigInt(row.now.getTime() - this.#now()) * 1_000_000n;
      // What is no base64 text in a JSON object named "data" was not written by Pulumi.
      const content = row.body === undefined ? describeTooLarge(row.size) : parseLockBody(Buffer.from(row.body, "base64"));
      return { kind: "found", version: row.version, storedAt: fromMilliseconds(row.storedAt.getTime()), content };
    });
  }

  async readState(key: string, mostBytes: number): Promise<StateRead> {
    const row = await this.#select(key, mostBytes, "read a checkpoint");
    if (row === undefined) return { kind: "gone" };
    return row.body === undefined ? { kind: "too-large", size: row.size } : { kind: "whole", bytes: Buffer.from(row.body, "base64") };
  }

  async deleteLock(key: string, version: string): Promise<Deletion> {
    return await deleteUntilAnswered(() => this.#tryDelete(key, version), this.#name);
  }

  async createLock(key: string, body: Uint8Array): Promise<"created" | "exists"> {
    return await this.#insert(key, body, "put a lock back");
  }

  async checkWrites(): Promise<readonly WriteCheck[]> {
    const [row] = await this.#query<{ readonly remove: boolean; readonly record: boolean }>(
      "SELECT has_table_privilege($1, 'DELETE') AS remove, has_table_privilege($1, 'INSERT') AS record",
      [this.#table],
      "ask for its rights",
    );
    const check = (action: WriteCheck["action"], allowed: boolean, privilege: string): WriteCheck => ({
      action,
      kind: allowed ? "allowed" : "denied",
      note: `${privilege} on ${this.#table}`,
    });
    return [check("remove locks", row?.remove === true, "DELETE"), check("write records", row?.record === true, "INSERT")];
  }

  clockOffset(): Nanoseconds | undefined {
    return this.#clockOffset;
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #tryDelete(key: string, version: string): Promise<Deletion | "unanswered"> {
    try {
      // One statement: the comparison and the delete cannot come apart.
      const deleted = await this.#pool.query(`DELETE FROM ${this.#table} WHERE key = $1 AND ${VERSION} = $2`, [this.#prefix + key, version]);
      if (deleted.rowCount === 1) return { kind: "deleted", conditionEnforced: true };
      return { kind: (await this.#select(key, MAX_LOCK_BYTES, "read a lock")) === undefined ? "vanished" : "changed" };
    } catch (error) {
      if (isUnanswered(error)) return "unanswered";
      throw wrapPostgresError(error, this.#name, "remove a lock");
    }
  }

  async #insert(key: string, bytes: Uint8Array, action: Action): Promise<"created" | "exists"> {
    try {
      const data = JSON.stringify({ data: Buffer.from(bytes).toString("base64") });
      const inserted = await this.#pool.query(`INSERT INTO ${this.#table} (key, data) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING`, [
        this.#prefix + key,
        data,
      ]);
      return inserted.rowCount === 1 ? "created" : "exists";
    } catch (error) {
      throw wrapPostgresError(error, this.#name, action);
    }
  }

  async *#list(folder: string, action: Action): AsyncGenerator<readonly LockEntry[]> {
    // In LIKE "_" and "%" are wildcards, and a database's name may well have the first.
    const pattern = `${(this.#prefix + folder).replace(/[\\%_]/g, "\\$&")}%`;
    let last = "";
    for (;;) {
      const rows = await this.#query<{ readonly key: string; readonly updated_at: Date }>(
        `SELECT key, updated_at FROM ${this.#table} WHERE key LIKE $1 ESCAPE '\\' AND key > $2 COLLATE "C" ORDER BY key COLLATE "C" LIMIT ${this.#pageSize}`,
        [pattern, last],
        action,
      );
      yield rows
        .filter(({ key }) => !key.endsWith("/"))
        .map(({ key, updated_at: at }) => ({ key: key.slice(this.#prefix.length), storedAt: fromMilliseconds(at.getTime()) }));
      const end = rows.at(-1)?.key;
      if (end === undefined || rows.length < this.#pageSize) return;
      if (end <= last) throw describeCircle(this.#name, action);
      last = end;
    }
  }

  async #select(key: string, limit: number, action: Action): Promise<Row | undefined> {
    const [row] = await this.#query<{
      readonly version: string;
      readonly updated_at: Date;
      readonly now: Date;
      readonly length: number | null;
      readonly body: string | null;
    }>(
      `SELECT ${VERSION} AS version, updated_at, clock_timestamp() AS now, length(data->>'data') AS length, CASE WHEN length(data->>'data') <= $2 THEN data->>'data' END AS body FROM ${this.#table} WHERE key = $1`,
      // Base64 makes four characters of three bytes.
      [this.#prefix + key, Math.ceil(limit / 3) * 4],
      action,
    );
    if (row === undefined) return undefined;
    const size = Math.floor(((row.length ?? 0) * 3) / 4);
    const body = row.length === null ? "" : (row.body ?? undefined);
    return { version: row.version, storedAt: row.updated_at, now: row.now, size, ...(body === undefined ? {} : { body }) };
  }

  async #query<Found extends QueryResultRow>(text: string, values: readonly unknown[], action: Action): Promise<readonly Found[]> {
    try {
      return (await this.#pool.query<Found>(text, [...values])).rows;
    } catch (error) {
      throw wrapPostgresError(error, this.#name, action);
    }
  }
}

interface Row {
  readonly version: string;
  readonly storedAt: Date;
  readonly now: Date;
  readonly size: number;
  /** Base64; absent when it is too large to be read. */
  readonly body?: string;
}

// The row's own version (https://www.postgresql.org/docs/current/ddl-system-columns.html) together with what it says.
const VERSION = "xmin::text || '-' || md5(data::text)";

function composeTls(
  tls: PostgresTls,
  host: string,
): false | { readonly rejectUnauthorized: boolean; readonly ca?: string; readonly servername?: string; readonly checkServerIdentity?: () => undefined } {
  switch (tls.kind) {
    case "off":
      return false;
    case "unchecked":
      return { rejectUnauthorized: false };
    case "checked":
      return {
        rejectUnauthorized: true,
        servername: host,
        ...(tls.ca === undefined ? {} : { ca: tls.ca }),
        ...(tls.checkHost ? {} : { checkServerIdentity: () => undefined }),
      };
  }
}
