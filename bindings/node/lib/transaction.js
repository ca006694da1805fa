'use strict'

const { setTimeout: pause } = require('timers/promises')
const { milliseconds } = require('./checks')
const { errorWith } = require('./errors')
const { packKeys } = require('./packed')

// How often transact() runs its work, and the longest pause before the next time, in milliseconds.
const TRIES_MAX = 200
const PAUSE_MAX = 12

/** Reads and writes that commit as one, or not at all. Calls of databases and keyspaces have it as the option `transaction`. */
class Transaction {
  #db
  // The addon's transaction, until the end.
  #native
  // The end of the last call: one call at a time works.
  #last = Promise.resolve()

  constructor (db, native) {
    this.#db = db
    this.#native = native
    db.attachResource(this)
  }

  static async begin (db, native, options) {
    const { isolation = 'serializable', locking = false, timeout } = options ?? {}
    const begun = await native.begin({
      isolation,
      locking: Boolean(locking),
      timeout: timeout == null ? undefined : milliseconds(timeout, 'timeout')
    })
    if (db.status !== 'open') {
      // Its close began meanwhile, and would not end the transaction.
      await begun.rollBack().catch(() => {})
      throw errorWith('LEVEL_DATABASE_NOT_OPEN', 'Database is not open')
    }
    return new Transaction(db, begun)
  }

  get db () {
    return this.#db
  }

  async savepoint () {
    return this.#run((native) => native.savepoint())
  }

  async rollbackTo (savepoint) {
    return this.#run((native) => native.rollBackTo(savepoint))
  }

  async commit (options) {
    return this.#end((native) => native.commit(options?.sync))
  }

  async rollback () {
    if (this.#native !== null) return this.#end((native) => native.rollBack())
    return this.#last
  }

  /** As rollback(). */
  async close () {
    return this.rollback()
  }

  async [Symbol.asyncDispose] () {
    return this.rollback()
  }

  /** The last call: nothing follows it. Until it has ended, a close of the database waits for it. */
  #end (call) {
    const ended = this.#run(call)
    this.#native = null
    this.#last = this.#last.then(() => this.#db.detachResource(this))
    return ended
  }

  /** Makes a call after those before it. */
  #run (call) {
    const native = this.#native
    if (native === null) {
      throw errorWith('LEVEL_TRANSACTION_NOT_OPEN', 'Transaction is not open')
    }
    const outcome = this.#last.then(() => call(native))
    this.#last = outcome.then(() => {}, () => {})
    return outcome
  }

  // What the entries of keyspaces do in a transaction. `native` is the addon's database of the keyspace.

  static async get (transaction, native, key, { valueEncoding, forUpdate }) {
    check(transaction)
    if (forUpdate === true) await transaction.#run((it) => it.lock(native, packKeys([key])))
    return transaction.#run((it) => it.get(native, key, valueEncoding !== 'utf8'))
  }

  static async getMany (transaction, native, packed, { forUpdate }) {
    check(transaction)
    if (forUpdate === true) await transaction.#run((it) => it.lock(native, packed))
    return transaction.#run((it) => it.getMany(native, packed))
  }

  static async write (transaction, writes) {
    check(transaction)
    const { natives, bytes } = writes
    return transaction.#run((it) => it.write(natives, bytes))
  }

  static async clear (transaction, native, range) {
    check(transaction)
    return transaction.#run((it) => it.clear(native, range))
  }

  static iterator (transaction, native, range, form) {
    check(transaction)
    if (transaction.#native === null) {
      throw errorWith('LEVEL_TRANSACTION_NOT_OPEN', 'Transaction is not open')
    }
    return transaction.#native.iterator(native, range, form)
  }

  /** Makes a call of an iterator of the transaction. */
  static async run (transaction, call) {
    return transaction.#run(call)
  }
}

function check (transaction) {
  if (!(transaction instanceof Transaction)) {
    throw new TypeError("The option 'transaction' must be a transaction")
  }
}

/** Runs work in a transaction and commits it, again after each conflict. */
async function transact (db, work, options) {
  for (let tries = 1; ; tries++) {
    const transaction = await db.transaction(options)
    try {
      const outcome = await work(transaction)
      await transaction.commit({ sync: options?.sync })
      return outcome
    } catch (error) {
      await transaction.rollback()
      const mayTryAgain = error?.code === 'LEVEL_CONFLICT' || error?.code === 'LEVEL_DEADLOCK'
      if (!mayTryAgain || tries === TRIES_MAX) throw error
    }
    await pause(Math.random() * Math.min(tries, PAUSE_MAX))
  }
}

module.exports = { Transaction, transact }
