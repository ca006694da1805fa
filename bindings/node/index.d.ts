import {
  AbstractBatchDelOperation,
  AbstractBatchOptions,
  AbstractBatchPutOperation,
  AbstractChainedBatch,
  AbstractChainedBatchWriteOptions,
  AbstractClearOptions,
  AbstractDatabaseOptions,
  AbstractDelOptions,
  AbstractGetManyOptions,
  AbstractGetOptions,
  AbstractHasManyOptions,
  AbstractHasOptions,
  AbstractIterator,
  AbstractIteratorOptions,
  AbstractLevel,
  AbstractOpenOptions,
  AbstractPutOptions,
  AbstractSnapshot,
  Transcoder
} from 'abstract-level'

/**
 * The entries of a keyspace, as an abstract-level database: what a database and its other keyspaces have in common.
 *
 * @template KDefault The type of keys of calls that name no encoding.
 * @template VDefault The type of values of calls that name no encoding.
 */
declare abstract class Entries<KDefault, VDefault>
  extends AbstractLevel<string | Buffer | Uint8Array, KDefault, VDefault> {
  get (key: KDefault): Promise<VDefault | undefined>
  get<K = KDefault, V = VDefault> (key: K, options: GetOptions<K, V>): Promise<V | undefined>

  getSync (key: KDefault): VDefault | undefined
  getSync<K = KDefault, V = VDefault> (key: K, options: AbstractGetOptions<K, V>): V | undefined

  getMany (keys: KDefault[]): Promise<Array<VDefault | undefined>>
  getMany<K = KDefault, V = VDefault> (keys: K[], options: GetManyOptions<K, V>): Promise<Array<V | undefined>>

  has (key: KDefault): Promise<boolean>
  has<K = KDefault> (key: K, options: HasOptions<K>): Promise<boolean>

  hasMany (keys: KDefault[]): Promise<boolean[]>
  hasMany<K = KDefault> (keys: K[], options: HasManyOptions<K>): Promise<boolean[]>

  put (key: KDefault, value: VDefault): Promise<void>
  put<K = KDefault, V = VDefault> (key: K, value: V, options: PutOptions<K, V>): Promise<void>

  del (key: KDefault): Promise<void>
  del<K = KDefault> (key: K, options: DelOptions<K>): Promise<void>

  /** Makes all operations as one write. Those with a keyspace as `sublevel` are of this keyspace. */
  batch (operations: Array<BatchOperation<typeof this, KDefault, VDefault>>): Promise<void>
  batch<K = KDefault, V = VDefault> (
    operations: Array<BatchOperation<typeof this, K, V>>,
    options: BatchOptions<K, V>
  ): Promise<void>
  batch (): ChainedBatch<typeof this, KDefault, VDefault>

  /**
   * Removes all entries, or those in a range. Without `limit` and `snapshot` it is one small write, however many entries
   * there are.
   */
  clear (): Promise<void>
  clear<K = KDefault> (options: ClearOptions<K>): Promise<void>

  iterator (): Iterator<typeof this, KDefault, VDefault>
  iterator<K = KDefault, V = VDefault> (options: IteratorOptions<K, V>): Iterator<typeof this, K, V>

  snapshot (): Snapshot

  /**
   * Writes an operand, which the merge operator of the keyspace folds into the value of the key: see
   * {@link OpenOptions.mergeOperator}.
   */
  merge (key: KDefault, operand: VDefault): Promise<void>
  merge<K = KDefault, V = VDefault> (key: K, operand: V, options: MergeOptions<K, V>): Promise<void>

  /** When the entry of the key expires: `null` for never, and `undefined` if there is none. */
  expiresAt (key: KDefault): Promise<Date | null | undefined>
  expiresAt<K = KDefault> (key: K, options: StartEndOptions<K>): Promise<Date | null | undefined>

  /**
   * About how many bytes of files hold the entries from `start` to before `end`. Entries that were written lately are in
   * memory and count nothing.
   */
  approximateSize (start: KDefault, end: KDefault): Promise<number>
  approximateSize<K = KDefault> (start: K, end: K, options: StartEndOptions<K>): Promise<number>

  /** Rewrites the entries from `start` to `end` without what was replaced or removed. */
  compactRange (start: KDefault, end: KDefault): Promise<void>
  compactRange<K = KDefault> (start: K, end: K, options: StartEndOptions<K>): Promise<void>
}

/** An ordered, persistent key-value store in a folder, as an abstract-level database. */
export class WindrowLevel<KDefault = string, VDefault = string> extends Entries<KDefault, VDefault> {
  /**
   * @param location The folder of the database.
   * @param options Those of {@link open}, and encodings.
   */
  constructor (location: string, options?: DatabaseOptions<KDefault, VDefault> | undefined)

  /** The folder of the database. */
  get location (): string

  open (options?: OpenOptions): Promise<void>

  /**
   * A keyspace beside that of the database: entries and options of its own. A missing one is created. It opens with the
   * database, and closes with it. It does not have the empty key.
   */
  keyspace<K = string, V = string> (name: string, options?: KeyspaceOpenOptions<K, V> | undefined): Keyspace<K, V>

  /** The names of all keyspaces but that of the database. */
  keyspaceNames (): Promise<string[]>

  /** Drops a keyspace with all its entries. */
  dropKeyspace (name: string): Promise<void>

  /** Begins a transaction. Calls with it as the option `transaction` are of it. */
  transaction (options?: TransactionOptions | undefined): Promise<Transaction>

  /**
   * Runs `work` with a transaction and commits it. After a conflict or a deadlock it begins again, up to 200 times. Gives
   * what `work` gives.
   */
  transact<T> (work: (transaction: Transaction) => T | Promise<T>, options?: TransactOptions | undefined): Promise<T>

  /** Makes all writes so far durable: they survive a power failure. */
  persist (): Promise<void>

  /** Writes what is in memory to tables. */
  flush (): Promise<void>

  /** Makes a copy of the database in a folder that is empty or missing. Files are linked where possible. */
  checkpoint (location: string): Promise<void>

  /**
   * Makes a backup of the database as of one moment during the call, with all writes that were acknowledged before. It copies
   * what the backups do not have yet. Gives its number. The backup is durable then; after an error it does not exist.
   */
  backup (backups: Backups): Promise<number>

  /**
   * The changes from a sequence number on; the first batch may begin before. Nothing is kept for them: `LEVEL_FELL_BEHIND` says
   * that they are gone. Close them.
   */
  changes (from: number, options?: ChangesOptions | undefined): Changes

  /**
   * Opens a consumer, or creates it. A new one begins behind the newest write and is durable: a snapshot that is taken afterwards
   * has everything before its changes.
   */
  consumer (name: string): Promise<Consumer>

  /** All consumers, by name, and what they hold. */
  consumers (): Promise<ConsumerStats[]>

  /** Forgets a consumer. What nobody else holds is removed. */
  removeConsumer (name: string): Promise<void>

  /** Checks every block and every value. Gives a sentence for each damage. */
  verify (): Promise<string[]>

  /** The work since the open, and the shape of the database. */
  stats (): Promise<Record<string, unknown>>

  /** Removes the database in this folder, and the folder if nothing else is in it. */
  static destroy (location: string): Promise<void>
}

/** A keyspace of a database beside that of the database itself. */
export class Keyspace<KDefault = string, VDefault = string> extends Entries<KDefault, VDefault> {
  private constructor ()

  /** Its name. */
  get name (): string

  /** The database that it is of. */
  get database (): WindrowLevel<any, any>
}

/** Options of {@link WindrowLevel.keyspace}. */
export interface KeyspaceOpenOptions<K, V> extends AbstractDatabaseOptions<K, V> {
  /** Options of the keyspace, recorded in the database. Those that are not here stay as they are. */
  keyspace?: KeyspaceOptions | undefined
}

/**
 * Reads and writes that commit as one, or not at all: calls of the database, its keyspaces and sublevels that have the
 * transaction as an option. They see the state at its beginning, with its own writes over it. One call at a time works, and
 * later ones wait for their turn. `rollback`, and the close of the database, discard the writes.
 */
export class Transaction {
  private constructor ()

  /** The database. */
  get db (): WindrowLevel<any, any>

  /** Marks the present state of writes and locks. */
  savepoint (): Promise<Savepoint>

  /** Discards what was written and locked since the savepoint. */
  rollbackTo (savepoint: Savepoint): Promise<void>

  /**
   * Makes the writes visible, and ends the transaction in any case. If another write has changed what the transaction
   * depends on, it fails with `LEVEL_CONFLICT`, and nothing was written.
   */
  commit (options?: WriteOptions | undefined): Promise<void>

  /** Discards the writes. It does nothing after the end. */
  rollback (): Promise<void>

  /** As {@link rollback}. */
  close (): Promise<void>

  [Symbol.asyncDispose] (): Promise<void>
}

/** A state of a transaction, for {@link Transaction.rollbackTo}. */
export interface Savepoint {
  readonly constructor: Function
}

/** Options of {@link WindrowLevel.transaction}. */
export interface TransactionOptions {
  /**
   * What a commit without locks depends on: all that was read, or the keys alone that were written or read for an update.
   *
   * @defaultValue `'serializable'`
   */
  isolation?: 'serializable' | 'snapshot' | undefined

  /**
   * Whether the transaction locks the keys that it writes or reads for an update, and waits for others that have them.
   *
   * @defaultValue `false`
   */
  locking?: boolean | undefined

  /**
   * How many seconds it waits for a lock. Then the call fails with `LEVEL_TIMED_OUT`.
   *
   * @defaultValue `1`
   */
  timeout?: number | undefined
}

/** Options of {@link WindrowLevel.transact}. */
export interface TransactOptions extends TransactionOptions, WriteOptions {}

/**
 * The changes of a database in the order of the commits: each comes once, when readers can see it and it is durable. Reads take
 * turns, and after an error the next one tries the same change again. A wait has a thread of its own, none of libuv. The close
 * of the database closes them.
 */
export class Changes {
  private constructor ()

  /**
   * Waits for the next change: for so many seconds, or without an end. Gives `undefined` if there was none. What a signal ends
   * loses nothing.
   */
  wait (timeout?: number | undefined, options?: { signal?: AbortSignal | undefined } | undefined): Promise<Change | undefined>

  /** Ends when no change comes within the `timeout` of the options. It may be taken up again. */
  [Symbol.asyncIterator] (): AsyncGenerator<Change, void, void>

  /** Frees what they have, and ends a wait. Later calls are errors: `LEVEL_CHANGES_NOT_OPEN`. */
  close (): Promise<void>

  [Symbol.asyncDispose] (): Promise<void>
}

/** Options of the iteration over {@link Changes}. */
export interface ChangesOptions {
  /**
   * How many seconds the iteration waits for each change: `Infinity` follows the changes.
   *
   * @defaultValue `0`
   */
  timeout?: number | undefined

  /** Ends the iteration with an error. */
  signal?: AbortSignal | undefined
}

/**
 * A named consumer of the changes of a database, whose place survives. The database keeps every change behind it, within the
 * bounds of the options.
 */
export class Consumer {
  private constructor ()

  get name (): string

  /**
   * The changes behind its place. `LEVEL_FELL_BEHIND` says that it held too much, or was silent for too long: then remove it and
   * create it anew, copy a snapshot, and go on with the changes behind that. Close them.
   */
  changes (options?: ChangesOptions | undefined): Changes

  /** Its place: it has done with every change up to this sequence number. */
  acknowledged (): Promise<number>

  /**
   * Notes that it has done with every change up to this sequence number. That is durable at the end. It costs two syncs, so
   * acknowledge after many changes.
   */
  acknowledge (sequence: number): Promise<void>
}

/** What a consumer holds. */
export interface ConsumerStats {
  name: string
  /** It has done with every change up to this sequence number. */
  acknowledged: number
  /** Whether it has fallen behind: it holds nothing, and changes behind its place may be gone. */
  isBehind: boolean
  /** The bytes on the disk that are there for consumers alone. */
  heldBytes: number
}

/** A change of a database. A consumer that has done with it acknowledges its `sequence`. */
export type Change = BatchChange | KeyspaceChange | KeyspaceRename | TablesAdded

/** Writes that were committed together. */
export interface BatchChange {
  type: 'batch'
  /** The sequence number of the last write. */
  sequence: number
  /** The sequence number of the first write. */
  firstSequence: number
  /** In their order. Those to keyspaces that were dropped since are left out. */
  writes: ChangeWrite[]
}

/** A keyspace that was created or dropped. */
export interface KeyspaceChange {
  type: 'keyspaceCreated' | 'keyspaceDropped'
  sequence: number
  keyspace: string
}

/** A keyspace that has another name. */
export interface KeyspaceRename {
  type: 'keyspaceRenamed'
  sequence: number
  from: string
  to: string
}

/** Tables that a bulk load has added, whose entries are in no change: copy these keyspaces from a snapshot. */
export interface TablesAdded {
  type: 'tablesAdded'
  sequence: number
  /** None if no consumer holds the change: then they are not known. */
  keyspaces: string[]
}

/** A write. Its bytes share the memory of their change. */
export type ChangeWrite =
  | { type: 'put', keyspace: string, key: Buffer, value: Buffer, expiresAt?: Date }
  | { type: 'del', keyspace: string, key: Buffer }
  | { type: 'merge', keyspace: string, key: Buffer, value: Buffer }
  | { type: 'clear', keyspace: string, gte: Buffer, lt: Buffer | undefined }

/**
 * Backups of a database in a folder. One object has the folder, once: others get `LEVEL_LOCKED`. Each database has a folder of
 * its own. One call at a time works, and later ones wait for their turn.
 */
export class Backups {
  private constructor ()

  /** Opens the backups in a folder, which is created if it is missing. */
  static open (location: string, options?: BackupsOptions | undefined): Promise<Backups>

  /** The folder. */
  get location (): string

  /** The backups, oldest first, also those that cannot be used. */
  list (): Promise<Array<Backup | DamagedBackup>>

  /** Reads all bytes of one backup, or of all, and compares them with their checksums. Gives a sentence for each damage. */
  verify (number?: number | undefined): Promise<string[]>

  /**
   * Writes the database of a backup, or of the newest one, to a folder that is empty or missing. All bytes are checked on the
   * way. The database is durable at the end; after an error there is none.
   */
  restore (location: string, number?: number | undefined): Promise<void>

  /**
   * Removes all backups but this many of the newest, at least 1, and the bytes that no other backup needs. Gives the numbers
   * of those that were removed.
   */
  keepNewest (count: number): Promise<number[]>

  /** Removes the backups that were made longer ago, except the newest one. Gives the numbers of those that were removed. */
  removeOlder (seconds: number): Promise<number[]>

  /** Removes a backup, whatever its state. */
  remove (number: number): Promise<void>

  /** Lets others have the folder, after the calls that began before. Later calls are errors: `LEVEL_BACKUPS_NOT_OPEN`. */
  close (): Promise<void>

  [Symbol.asyncDispose] (): Promise<void>
}

/** Options of {@link Backups.open}. */
export interface BackupsOptions {
  /**
   * Whether the folder exists, and backups are listed, verified and restored alone. Others may do the same meanwhile.
   *
   * @defaultValue `false`
   */
  readOnly?: boolean | undefined

  /**
   * How many bytes each call may read in a second, for a disk that other programs use, too; 0 for no limit.
   *
   * @defaultValue `0`
   */
  bytesPerSecond?: number | undefined
}

/** A backup of a list. */
export interface Backup {
  number: number
  created: Date
  /** The newest sequence number that it holds. */
  sequence: number
  /** The files of the database. */
  files: number
  /** The bytes of these files. */
  bytes: number
  /** The bytes that no other backup needs. */
  ownBytes: number
  error?: undefined
}

/** A backup of a list that cannot be used, and why. */
export interface DamagedBackup {
  number: number
  error: Error & { code: string }
}

/**
 * A reader of a database that this or another process may have open for writing. Each state that it has read is a database that
 * never changes, and whose writes are `LEVEL_READ_ONLY`. It keeps the files that its states need in the folder, so close it, and
 * them. The program must be allowed to write to the folder, because a file there says what it reads.
 */
export class Secondary {
  private constructor ()

  /** Options are those of an open, and encodings of its states. */
  static open<KDefault = string, VDefault = string> (
    location: string,
    options?: DatabaseOptions<KDefault, VDefault> | undefined
  ): Promise<Secondary>

  /** The folder of the database. */
  get location (): string

  /** The newest state that was read. It is open. */
  database<KDefault = string, VDefault = string> (): Promise<WindrowLevel<KDefault, VDefault>>

  /**
   * Reads what was committed since, and gives the newest state. It has every commit that was acknowledged before the call.
   * `LEVEL_FELL_BEHIND` says that this process was stopped for too long: the next call begins anew.
   */
  catchUp<KDefault = string, VDefault = string> (): Promise<WindrowLevel<KDefault, VDefault>>

  /** Catches up by itself, so many seconds after each time. What fails there is tried again. */
  follow (seconds: number): Promise<void>

  /** Frees the reader. Its states stay open. Later calls are errors: `LEVEL_SECONDARY_NOT_OPEN`. */
  close (): Promise<void>

  [Symbol.asyncDispose] (): Promise<void>
}

/** What a database keeps for a crash of the machine: `sync` waits for the disk, `buffered` for the operating system. */
export type Durability = 'buffered' | 'sync'

/** Options of an open. Windrow's documents say more about each: their names there are in snake case. */
export interface OpenOptions extends AbstractOpenOptions {
  /**
   * Whether all opens of this folder in this process that have the option share one database, also in workers. The
   * options of the first one hold. Without it, a second open is refused with `LEVEL_LOCKED`.
   *
   * @defaultValue `false`
   */
  multithreading?: boolean | undefined

  /**
   * Of writes that do not say `sync`.
   *
   * @defaultValue `'buffered'`
   */
  durability?: Durability | undefined

  /**
   * How much memory the database may use, in bytes; 0 for no limit.
   *
   * @defaultValue `512 * 1024 * 1024`
   */
  memoryBudget?: number | undefined

  /**
   * The size of the cache of compressed blocks, in bytes.
   *
   * @defaultValue `64 * 1024 * 1024`
   */
  cacheBytes?: number | undefined

  /** What an open does if the log of writes is damaged: fail, or go on with the commits before the damage. */
  recovery?: 'strict' | 'up-to-damage' | undefined

  /** How reads get blocks. */
  blockSource?: 'mapped' | 'buffered' | undefined

  /** A bound on the log of writes, and so on the time of an open after a crash, in bytes. */
  maxWalBytes?: number | undefined

  /** Threads for flushes and compactions. */
  backgroundThreads?: number | undefined

  /** How many table files stay open. */
  openFilesMax?: number | undefined

  /** How many bytes compactions may write in a second; 0 for no limit. */
  compactionBytesPerSecond?: number | undefined

  /** Space on the disk that is kept back for a full disk, in bytes. */
  reserveBytes?: number | undefined

  /** How many bytes on the disk each consumer of changes may hold; one that holds more falls behind. */
  changeRetentionBytes?: number | undefined

  /** For how many seconds a consumer of changes may hold a log without an acknowledgement. */
  changeRetentionIdle?: number | undefined

  /** After how many seconds a block in memory is verified again. */
  scrubInterval?: number | undefined

  /** In how many seconds background work checks all files once; 0 for never. */
  fullScrubInterval?: number | undefined

  /**
   * Whether writes go to a log. Without it they cost less, and only `persist()` makes them durable: whatever ends the process,
   * even a close, the next open finds the database as it was at the last `persist()`.
   *
   * @defaultValue `true`
   */
  log?: boolean | undefined

  /** For how many seconds a transaction waits for each lock, unless it says otherwise. */
  lockTimeout?: number | undefined

  /** The size of the files `LOG` and `LOG.old`, with a line for each event, in bytes; 0 for none. */
  jobLogBytes?: number | undefined

  /** After how many seconds the file `STATUS` gets the statistics again; 0 for never. */
  statusInterval?: number | undefined

  /** One of so many calls is timed; 0 for none. */
  latencyInterval?: number | undefined

  /** Options of the keyspace, recorded in the database. Those that are not here stay as they are. */
  keyspace?: KeyspaceOptions | undefined

  /** The operator that folds operands of the database into values, by its name. The database records it. */
  mergeOperator?: MergeOperator | undefined

  /** The operators of other keyspaces, by the names of these. */
  mergeOperators?: Record<string, MergeOperator> | undefined
}

/**
 * The name of a ready operator: `windrow.add_u64.wrapping`, `windrow.add_u64.saturating` and the same with `i64` for sums of
 * numbers of 8 bytes, little-endian; `windrow.least`; `windrow.greatest`; `windrow.append.` and the bytes of a separator in
 * hexadecimal digits; `windrow.id_set.` and a number of bytes.
 */
export type MergeOperator = string

/** Options of the keyspace. */
export interface KeyspaceOptions {
  /** The options for a kind of use, which the others change. */
  preset?: 'balanced' | 'leveling' | 'autumn' | 'parallax' | 'lsma' | undefined
  /** How tables are compressed. */
  compression?: 'none' | 'lz4' | 'zstd' | undefined
  /** The size of a memtable, in bytes. */
  memtableBytes?: number | undefined
  /** The size of a block, in bytes. */
  blockBytes?: number | undefined
  /** The size of a table file, in bytes. */
  fileBytes?: number | undefined
  /** The size of the filters. */
  bitsPerKey?: number | undefined
  /** Seconds after which values expire. */
  defaultTtl?: number | undefined
  /** The size ratio of the last two levels. */
  sizeRatio?: number | undefined
  /** By how much ratios grow towards the shallow levels: 1 divided by this. */
  scaling?: number | undefined
  /** The capacity of level 1 while it is the only level, in bytes. */
  baseBytes?: number | undefined
  /** Which files have how many bits of filters. */
  filterAllocation?: 'monkey' | 'uniform' | undefined
  /** How many runs level 0 has before a compaction merges them. */
  level0Runs?: number | undefined
  /** The most segments of a table file. */
  segmentLimit?: number | 'scaled' | undefined
  /** The bound on bytes of files over bytes of live data. */
  maxSpaceAmp?: number | undefined
  /** From how many bytes on an entry is medium. */
  mediumFrom?: number | 'never' | undefined
  /** From how many bytes on an entry is large, so that its value is stored apart. */
  largeFrom?: number | 'never' | undefined
  /** In which level compactions put medium values in place. */
  mediumInPlace?: 'last' | 'before-last' | 'never' | undefined
  /** The order in which medium values are stored. */
  mediumOrder?: 'sorted' | 'written' | undefined
}

/** Options of the constructor. */
export interface DatabaseOptions<K, V>
  extends AbstractDatabaseOptions<K, V>, Omit<OpenOptions, 'passive'> {}

/** Options of writes. */
export interface WriteOptions {
  /**
   * Whether the write waits for the disk, and so survives a power failure.
   *
   * @defaultValue that of {@link OpenOptions.durability}
   */
  sync?: boolean | undefined
}

/** The option of calls that may be of a transaction. */
export interface InTransaction {
  /** The transaction of the call. */
  transaction?: Transaction | undefined
}

/** Options of reads in a transaction. */
export interface ReadInTransaction extends InTransaction {
  /**
   * Whether the commit depends on the key under each isolation. A locking transaction locks the key first, and reads its
   * newest value.
   *
   * @defaultValue `false`
   */
  forUpdate?: boolean | undefined
}

/** The option of values that expire. */
export interface Expiring {
  /** After how many seconds the value expires. Without it, the default of the keyspace holds. */
  ttl?: number | undefined
}

export interface PutOptions<K, V> extends AbstractPutOptions<K, V>, WriteOptions, InTransaction, Expiring {}
export interface DelOptions<K> extends AbstractDelOptions<K>, WriteOptions, InTransaction {}
export interface BatchOptions<K, V> extends AbstractBatchOptions<K, V>, WriteOptions, InTransaction, Expiring {}
export interface ClearOptions<K> extends AbstractClearOptions<K>, WriteOptions, InTransaction {}
export interface ChainedBatchWriteOptions extends AbstractChainedBatchWriteOptions, WriteOptions, InTransaction {}
export interface MergeOptions<K, V> extends AbstractPutOptions<K, V>, WriteOptions, InTransaction {}

/** The place of an operation, if it is not the database of the batch: a sublevel of it, or a keyspace or a sublevel of one. */
export interface InSublevel {
  sublevel?: AbstractLevel<any, any, any> | undefined
}

/** An operation of a batch. A value may have a time to live. */
export type BatchOperation<TDatabase, K, V> =
  (Omit<AbstractBatchPutOperation<TDatabase, K, V>, 'sublevel'> & InSublevel & Expiring) |
  (Omit<AbstractBatchDelOperation<TDatabase, K>, 'sublevel'> & InSublevel)

/** Options of operations of a chained batch. */
export type PlaceOptions<K, V> = AbstractPutOptions<K, V> & InSublevel

export class ChainedBatch<TDatabase, KDefault, VDefault>
  extends AbstractChainedBatch<TDatabase, KDefault, VDefault> {
  put (key: KDefault, value: VDefault): this
  put<K = KDefault, V = VDefault> (key: K, value: V, options: PlaceOptions<K, V> & Expiring): this

  /** Adds an operand. */
  merge (key: KDefault, operand: VDefault): this
  merge<K = KDefault, V = VDefault> (key: K, operand: V, options: PlaceOptions<K, V>): this

  /** Adds the removal of the entries in a range, or of all. */
  clearRange<K = KDefault> (options?: RangeOptions<K> & PlaceOptions<K, unknown>): this

  write (options?: ChainedBatchWriteOptions): Promise<void>
}

/** Options of iterators. */
export type IteratorOptions<K, V> = AbstractIteratorOptions<K, V> & InTransaction & {
  /**
   * An iterator reads no more entries at once after this many bytes.
   *
   * @defaultValue `64 * 1024`
   */
  highWaterMarkBytes?: number | undefined
}

export type Iterator<TDatabase, K, V> = AbstractIterator<TDatabase, K, V> & {
  /** How many entries it has read that it has not given yet. */
  readonly cached: number
}

export type GetOptions<K, V> = AbstractGetOptions<K, V> & ReadInTransaction
export type GetManyOptions<K, V> = AbstractGetManyOptions<K, V> & ReadInTransaction
export type HasOptions<K> = AbstractHasOptions<K> & ReadInTransaction
export type HasManyOptions<K> = AbstractHasManyOptions<K> & ReadInTransaction

/** Bounds of a range of keys. */
export interface RangeOptions<K> {
  gt?: K | undefined
  gte?: K | undefined
  lt?: K | undefined
  lte?: K | undefined
}

export class Snapshot extends AbstractSnapshot {
  private constructor ()

  /** The sequence number of the newest write in the snapshot, whose changes are those up to here. */
  get sequence (): number
}

/** Options of `approximateSize` and `compactRange`. */
export interface StartEndOptions<K> {
  /** The encoding of `start` and `end`. */
  keyEncoding?: string | Transcoder.PartialEncoder<K> | undefined
}

export {}
